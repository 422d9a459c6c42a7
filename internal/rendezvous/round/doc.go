// Package round decides which pods of a job are in a round, when the round begins and when it is over. It is a state
// machine that is given observations and the time; it has no clock, lock or connection of its own. The rendezvous
// server asks it for the answer to each agent.
//
// A round begins when every pod of the job has an agent that waits, also those that the job is about to create, or when
// at least the minimum waits and the rest has taken too long. It is over when a member is lost, fails or restarts, or
// when pods that are not in it wait and it may grow. A member whose agent is disconnected is not lost: its command runs
// on.
//
// For example, a job of three loses a pod. The two others stop their commands and wait for the pod that replaces it:
// otherwise they would begin a round of two, and have to stop again as soon as the new pod is there.
//
// Nothing is stored: an operator that has restarted learns of a round from the requests of its members. It may hear
// from none of them and number its rounds from 1 again, so rounds are told apart by ID, not by number.
package round
