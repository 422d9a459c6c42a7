// Package lifecycle decides what happens to one Workload for its own sake: deactivation, deadlines, admission checks, the
// stop policies of its queues, back-off, retention. Who gets quota, and who loses it to another, is the engine's.
//
// Next is a pure function: the admission shell calls it with what the watches have seen and carries out the one write that
// it asks for. Deadlines are reckoned from times that stand in the object, so that a restart changes none of them and a
// clock that jumps moves none of them for good.
package lifecycle
