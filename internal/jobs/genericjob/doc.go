// Package genericjob gives GenericJobs (batch.tensorstack.dev/v1beta1) their meaning:
// what they ask of a queue, and which pods, Services and status follow from their spec
// and from how their pods fare. One policy a file.
//
// Everything in it is a pure function; the shared reconciler of package jobs calls
// them and its executor writes what they plan. The pods are package replicas'.
package genericjob
