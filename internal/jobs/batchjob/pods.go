package batchjob

import (
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/musterhq/muster/internal/jobs"
)

// quiet reports whether the Job has no pods and will get none: it is suspended, and
// the Job controller knows. One that was created so and never changed since cannot
// have had any.
func quiet(job *batchv1.Job) bool {
	if job.Status.Active > 0 || ptr.Deref(job.Status.Terminating, 0) > 0 {
		return false
	}
	return outcome(job) != nil || suspended(job) && (job.Generation <= 1 || condition(job, batchv1.JobSuspended) != nil)
}

// ready reports whether all pods of a Job that runs are ready or have succeeded, or as many
// are ready as it needs now that some indexes have failed for good. Pods that have just ended
// are in neither count for a moment, and listed meanwhile.
func ready(job *batchv1.Job) bool {
	done := job.Status.Succeeded + ptr.Deref(job.Status.Ready, 0)
	if uncounted := job.Status.UncountedTerminatedPods; uncounted != nil {
		done += int32(len(uncounted.Succeeded))
	}
	return !suspended(job) && outcome(job) == nil && (done >= podsOf(&job.Spec) || ptr.Deref(job.Status.Ready, 0) >= pending(job))
}

// pending is how many pods the Job runs at a time from now on: as its end comes
// nearer it needs fewer.
func pending(job *batchv1.Job) int32 {
	parallelism := ptr.Deref(job.Spec.Parallelism, 1)
	completions := ptr.Deref(job.Spec.Completions, parallelism)
	return max(min(parallelism, completions-terminal(job)), 0)
}

// reclaimable is how many of the pods that the Job asked for it needs no more. Of a Job that
// was given fewer some of these may be pods that it never had: what it was given is at most
// what is left of all that it asked for.
func reclaimable(job *batchv1.Job) int32 {
	asked := restored(job)
	if ptr.Deref(asked.Spec.Parallelism, 1) <= 1 || terminal(job) == 0 {
		return 0
	}
	pods := podsOf(&asked.Spec)
	// Where completions follow parallelism, there are fewer to come to with fewer pods.
	asked.Spec.Completions = ptr.To(ptr.Deref(job.Spec.Completions, ptr.Deref(job.Spec.Parallelism, 1)))
	return pods - pending(asked)
}

// terminal is how many completions are settled: pods that succeeded, and, of an
// Indexed Job, indexes that will not be tried again.
func terminal(job *batchv1.Job) int32 {
	if !indexed(job) {
		return job.Status.Succeeded
	}
	within := ptr.Deref(job.Spec.Completions, 0)
	// No index is in both lists.
	return jobs.CountIndexes(job.Status.CompletedIndexes, within) + jobs.CountIndexes(ptr.Deref(job.Status.FailedIndexes, ""), within)
}

// outcome is how the Job ended, or nil.
func outcome(job *batchv1.Job) *jobs.Outcome {
	for _, kind := range []batchv1.JobConditionType{batchv1.JobComplete, batchv1.JobFailed} {
		if c := condition(job, kind); c != nil {
			return &jobs.Outcome{Succeeded: kind == batchv1.JobComplete, Message: c.Message}
		}
	}
	return nil
}

// condition is the Job's condition of the type if it is true, else nil.
func condition(job *batchv1.Job, kind batchv1.JobConditionType) *batchv1.JobCondition {
	for i := range job.Status.Conditions {
		if c := &job.Status.Conditions[i]; c.Type == kind && c.Status == corev1.ConditionTrue {
			return c
		}
	}
	return nil
}
