// Package admission is the shell round the engine: it turns what the watches say
// into events, has the engine decide, and writes what it decided into the status
// of Workloads and queues.
//
// One goroutine owns the engine; everything else here talks to it through a
// mailbox. It knows no job API: a Workload is all it sees of a job.
package admission
