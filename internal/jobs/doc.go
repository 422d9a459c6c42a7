// Package jobs is the contract of a job API: what its author reads.
//
// A job API consists of two pure functions: Describe returns what a job asks of a queue, and Plan returns the writes,
// the status and the events that follow from the observed state. API holds both, and the options that say which objects
// are read and watched. Each API has a package of its own below this one; none of them imports another.
//
//	api.go, plan.go, seen.go      the contract: API, what Plan sees, and what Plan returns
//	facts.go, queues.go           what Describe and Plan may know of the cluster
//	admission.go, places.go       what a job was granted, and where its pods go
//	gangs.go, elastic.go, ...     what several APIs do alike
//
// Beside the APIs are the rooms that they need not know: write makes the writes of a plan, workloads says what the
// Workload of a job should be, and controller reconciles: it reads, plans, and passes on what is to be written.
//
// This package must not know the engine: a job reaches it only through its Workload.
package jobs
