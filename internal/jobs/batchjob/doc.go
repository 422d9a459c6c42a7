// Package batchjob is the batch/v1 Job API: Jobs with a queue wait suspended until
// they are admitted, run where their quota is, and are stopped when they lose it.
//
// It describes Jobs and plans what becomes of them, as pure functions; package jobs
// calls them. It makes no pods: Kubernetes' Job controller does, as spec.suspend and
// the pod template say.
package batchjob
