// Package trainingjob gives TrainingJobs (breezeml.ai/v1) their meaning: what they ask of a queue, between which sizes,
// and which pods, Services and status follow from the size that they are granted and from how their pods fare. One
// policy a file.
//
// Everything in it is a pure function; the shared reconciler of package jobs calls them and its executor writes what
// they plan. The pods are package replicas'.
package trainingjob
