// Package jobs is the contract of a job API, and the one reconciler and the one
// executor that all job APIs share.
//
// A job API gives two pure functions: Describe says what a job asks of a queue,
// Plan says which writes, status and events follow from what was seen. The
// reconciler reads, keeps the job's Workload in step, calls Plan with what the
// Workload was granted, and hands the result to the executor, which is the only
// one here that writes. A folder below holds each API; none imports another.
//
// Nothing here knows the engine: a job meets it only through its Workload.
package jobs
