// Package replicas is about pods that Muster owns itself: which replicas a job has,
// how each fares by its pod and by what the job's status remembers of it, which are
// restarted, and which pods and Services are to be made or deleted for that.
//
// A replica and its pod have one name, <job>-<group>-<index>, so the API server
// itself sees to it that there are never two pods for an index. A pod bears the
// number of restarts before it; what the status counts beyond that makes it a pod of
// the past, which is deleted, and only when it is gone is the next one made. So a
// restart is decided once, by one write of the status, whatever befalls the writes
// that follow from it.
//
// Everything in it is pure. Job APIs call it; it knows none of them, nor any queue.
package replicas
