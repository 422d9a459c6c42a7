// Package jobset implements the JobSet API (jobset.x-k8s.io/v1alpha2): what a JobSet asks of a queue, and which Jobs,
// Services and status follow from its spec and the state of its Jobs. Each policy has a file of its own.
//
// All are pure functions, which the shared reconciler of package jobs calls through API. The executor of that package
// does the planned writes.
package jobset
