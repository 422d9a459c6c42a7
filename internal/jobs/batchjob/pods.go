package batchjob

import (
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/utils/ptr"

	"github.com/musterhq/muster/internal/jobs"
)

// isReady reports whether all pods of a running Job are ready or have succeeded, or, if some indexes have finally
// failed, all that it still needs.
func isReady(job *batchv1.Job) bool {
	return !suspended(job) && outcomeOf(job) == nil &&
		(jobs.ReadyOrSucceeded(job) >= jobs.PodsAtATime(&job.Spec) || ptr.Deref(job.Status.Ready, 0) >= jobs.PodsLeft(job))
}

// podsInUse counts the pods of an admitted Job that may still use quota. It is nil while what the status counts is of
// another size, or of none: until the Job controller has observed this one. It is nil, too, while users can still give
// the Job more pods than it was granted: the quota of pods is not released as long as they can be added again.
func podsInUse(job *batchv1.Job, granted jobs.PodSetAdmission) map[string]int32 {
	if suspended(job) || job.Status.StartTime == nil || max(jobs.PodsLeft(job), mayBeGiven(job)) > granted.Count {
		return nil
	}
	return map[string]int32{string(podSet): job.Status.Active + ptr.Deref(job.Status.Terminating, 0)}
}

// reclaimable returns how many of the pods that the Job asked for it does not need any more. If it was given fewer,
// some of these may be pods that it never had: it then holds at most what is left of all that it asked for.
func reclaimable(job *batchv1.Job) int32 {
	asked := restored(job)
	if ptr.Deref(asked.Spec.Parallelism, 1) <= 1 || jobs.FinalCompletions(job) == 0 {
		return 0
	}
	pods := jobs.PodsAtATime(&asked.Spec)
	// If completions follow parallelism, a Job with fewer pods also needs fewer completions.
	asked.Spec.Completions = ptr.To(ptr.Deref(job.Spec.Completions, ptr.Deref(job.Spec.Parallelism, 1)))
	return pods - jobs.PodsLeft(asked)
}
