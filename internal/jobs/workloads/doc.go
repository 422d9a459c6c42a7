// Package workloads says what the Workload of a job should be, and what the Workload grants the job. It is pure.
//
// A job follows one Workload. From what is known of both, a State, a Job says which Workload that is (following.go), to
// which queue the job goes (queue.go), what was granted to it (grant.go), and what to write so that the Workload asks
// for what the job asks for, and says how far the job has come (sync.go, which decides by a table; request.go, what
// labels and annotations ask for, such as admission gates; workload.go, the Workload itself, and what of it is
// corrected when somebody else changes it; report.go).
//
// For example, a JobSet that asks for 8 pods waits, and its user changes it to 4: Sync returns the change of the
// Workload. If the JobSet has quota already, Sync returns an event instead: the change counts when it is queued again.
//
// A Workload without an owner is disowned if its job still lives: somebody has removed the owner reference. It is
// orphaned if the job was deleted without its pods. The documentation of package controller tells both from lost Jobs
// and abandoned Workloads.
//
// This package reads nothing from the cluster, and knows no API by name.
package workloads
