// Package genericjob implements GenericJobs (batch.tensorstack.dev/v1beta1): what they request of a queue, and which
// pods, Services and status follow from their spec and their pods. Each policy has its own file.
//
// All functions are pure: the reconciler of package controller calls them, and the executor of package write carries
// out what they plan. Package replicas manages the pods.
package genericjob
