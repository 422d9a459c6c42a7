// Package admission connects the engine to the API server: it translates watch events into engine events, runs the
// engine, and writes its decisions into the status of Workloads and queues.
//
// One goroutine, the admission loop, owns the engine; everything else in the package reaches it through a mailbox.
// The package knows no job API: of a job it sees only the Workload.
package admission
