// Package lifecycle decides what happens to a single Workload on its own account: deactivation, deadlines, admission
// checks, the stop policies of its queues, backoff and retention. Which Workload gets quota, and which loses it to
// another, is decided by the engine.
//
// Next is a pure function: package admission calls it with objects from the informers and carries out the one write
// that it returns. Deadlines are computed from times in the object, so that restarts do not change them and a clock
// that jumps does not move them for good.
package lifecycle
