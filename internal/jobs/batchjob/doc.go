// Package batchjob implements the batch/v1 Job API: Jobs with a queue wait suspended until they are admitted, run where
// their quota is, and are stopped when they lose it.
//
// It describes Jobs and plans changes of them in pure functions, which package controller calls through jobs.API. It
// creates no pods: Kubernetes' Job controller does, following spec.suspend and the pod template. The webhook suspends
// queued Jobs at creation where admission policies cannot.
package batchjob
