// Package waiting decides which waiting workloads are evaluated, and when. It is the only place where that is decided.
//
// Workloads that wait for the same thing in the same queue are a Class: if the first of them, its head, does not fit,
// none does. A class is ready, blocked, or empty:
//
//	            Join                Block(cause)
//	(empty) -----------> ready -------------------> blocked
//	   ^                   ^                           |
//	   |       Leave       |  something in its cause   |
//	   +------------------ +---------------------------+
//
// Whoever finds that a class does not fit blocks it with a Cause: all that the evaluation depended on. Whoever changes
// the quota, the nodes or the usage publishes that here, with a method that names the change: Released, Charged,
// NodesFreed and so on. A class becomes ready again once something in its cause has changed, and not before. Example:
// ten classes of queue A lack GPUs, and one of queue B lacks memory. A workload of A ends, which had 8 GPUs: the ten
// are ready, and the one of B stays blocked. They are evaluated in their order until nothing is left; those that still
// do not fit are blocked again.
//
// Decided here beside that:
//   - Which class of a queue comes first, and which classes wait behind a blocked head of their queue: heads.go.
//   - That a search for the heads of all queues, which takes several passes where many classes are hopeless, is not
//     begun anew each time something is released: sweep.go.
//   - Which class the safety net checks next, in case that an evaluation forgot to name something in its cause:
//     rounds.go.
//   - For whom time has come, such as the next try of a decision that the API server rejected: timers.go.
//
// The engine owns the room and calls it; a pass never reads another reason to evaluate a class. The package knows
// quotas and the rules of preemption, and neither workloads nor nodes.
package waiting
