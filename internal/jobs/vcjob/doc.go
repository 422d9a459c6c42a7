// Package vcjob gives the Jobs of batch.volcano.sh, which people call VCJobs, their meaning where Volcano itself is not
// there to run them: what they ask of a queue, and which pods, objects of plugins and status follow from their spec, from
// how their pods fare and from Commands. One policy a file.
//
// Everything in it is a pure function; the shared reconciler of package jobs calls
// them and its executor writes what they plan. The pods are package replicas'.
package vcjob
