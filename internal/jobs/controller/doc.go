// Package controller reconciles the jobs of all APIs: it reads what exists, has the API plan, and passes on the writes.
//
//	setup.go, served.go             AddTo adds a controller for each API that Serve was given
//	router.go                       an event of any object leads to reconciles of the jobs concerned
//	reconciler.go                   one reconcile: read, decide, write, and when to come back
//	decide.go                       what to do: the API's plan, and what the job's Workloads need
//	owners.go                       whose a job is: QueuedByOwner, by the kind, name and mark of its owner
//	read.go, follow.go, release.go  what is read: children, facts, Workloads, pods that are left
//	deletedjobs.go, orphans.go, ... what happens to jobs that are deleted, lost, or run by others
//
// Four words for what has lost its owner: an orphaned Workload is that of a job that was deleted without its pods
// (orphans.go). A lost Job was a JobSet's, and somebody has removed its owner reference (lostjobs.go). A disowned
// Workload is a job's, and somebody has removed its owner reference (package workloads, following.go). An abandoned
// Workload has its owner, a job that another controller runs now, or that none does (abandoned.go).
//
// What is remembered between reconciles is in package waiting, what is kept of events in package watching. Both are
// caches: the operator may be killed at any time, and decides the same from what it reads again.
//
// Only the executor of package write changes anything in the cluster.
package controller
