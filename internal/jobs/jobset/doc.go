// Package jobset implements the JobSet API (jobset.x-k8s.io/v1alpha2): what a JobSet asks of a queue, and which Jobs,
// Services and status follow from its spec and the state of its Jobs. Each policy has a file of its own.
//
// All functions are pure: the reconciler of package controller calls them, and the executor of package write carries
// out what they plan.
package jobset
