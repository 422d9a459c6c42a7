// Package admission connects the engine to the API server. Its loop takes watch events, translates them (package
// translate), lets the engine decide, and passes the decisions to the writers (packages decisions and report).
//
// One goroutine, the loop, owns the engine; everything else reaches it through a mailbox. The package knows no job API:
// of a job it sees only the Workload.
package admission
