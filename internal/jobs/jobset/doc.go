// Package jobset gives JobSets (jobset.x-k8s.io/v1alpha2) their meaning: what they
// ask of a queue, and which Jobs, Service and status follow from their spec and
// from how their Jobs fare. One policy a file.
//
// Everything in it is a pure function; the shared reconciler of package jobs calls
// them and its executor writes what they plan.
package jobset
