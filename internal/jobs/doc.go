// Package jobs defines the contract of a job API, and holds the one reconciler and the one executor that all job APIs
// share.
//
// A job API consists of two pure functions: Describe returns what a job asks of a queue, and Plan returns the writes,
// the status and the events that follow from the observed state. The reconciler reads that state, keeps the job's
// Workload in sync, calls Plan with what the Workload was granted, and passes the result to the executor, which does
// all writes of this package. Each API has a package of its own below this one; none of them imports another.
//
// This package must not know the engine: a job reaches it only through its Workload.
package jobs
