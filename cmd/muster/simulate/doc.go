// Package simulate plays a log of jobs on queues and nodes that a file describes, on a virtual clock, with the engine
// that decides in production: what would have waited how long. Run is the entry point. Command simulate calls it. It
// needs no cluster and changes none.
package simulate
