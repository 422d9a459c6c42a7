// Package write makes the changes of the cluster that the plans of jobs consist of, and records their events.
//
// A Write is one change: an object to create, change, apply or delete, with what follows if the API server refuses the
// change. A Batch is what one plan writes: writes, one status, and events. The Executor does a batch; it is the only
// writer of jobs, of their children, and of what jobs report on their Workloads. What went wrong is an error that joins
// a Failure for each write, which the functions of errors.go read.
//
// Writes of a batch are done concurrently and in no order, each on condition that the object is as it was observed, or
// idempotent by name. So the operator may be killed after any of them, and plans anew from what it finds.
//
// This package knows neither jobs nor their APIs.
package write
