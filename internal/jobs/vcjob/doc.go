// Package vcjob implements the Jobs of batch.volcano.sh, known as VCJobs, where Volcano does not run
// them: what they request of a queue, and which pods, plugin objects and status follow from their spec,
// their pods and Commands. Each policy has its own file.
//
// All functions are pure: the reconciler of package controller calls them, and the executor of package write carries
// out what they plan. Package replicas manages the pods.
package vcjob
