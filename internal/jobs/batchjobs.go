package jobs

import (
	"cmp"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/musterhq/muster/internal/jobs/write"
	"github.com/musterhq/muster/internal/pointers"
)

// What a batch/v1 Job says of itself, for the APIs whose pods the Job controller creates.

// PodsAtATime returns how many pods a Job runs at a time.
func PodsAtATime(spec *batchv1.JobSpec) int32 {
	parallelism := ptr.Deref(spec.Parallelism, 1)
	return min(parallelism, ptr.Deref(spec.Completions, parallelism))
}

// Indexed reports whether each pod of a Job has an index.
func Indexed(job *batchv1.Job) bool {
	return ptr.Deref(job.Spec.CompletionMode, batchv1.NonIndexedCompletion) == batchv1.IndexedCompletion
}

// PodsLeft returns how many pods a Job runs at a time from now on; near its end it needs fewer.
func PodsLeft(job *batchv1.Job) int32 {
	parallelism := ptr.Deref(job.Spec.Parallelism, 1)
	completions := ptr.Deref(job.Spec.Completions, parallelism)
	return max(min(parallelism, completions-FinalCompletions(job)), 0)
}

// FinalCompletions returns how many completions of a Job are final: pods that succeeded, and in an Indexed Job the
// indexes that will not be retried.
func FinalCompletions(job *batchv1.Job) int32 {
	if !Indexed(job) {
		return job.Status.Succeeded
	}
	within := ptr.Deref(job.Spec.Completions, 0)
	// No index is in both lists.
	return CountIndexes(job.Status.CompletedIndexes, within) +
		CountIndexes(ptr.Deref(job.Status.FailedIndexes, ""), within)
}

// ReadyOrSucceeded counts the pods of a running Job that are ready or have succeeded. Pods that have just ended are
// counted as neither for a short time, but are listed in uncountedTerminatedPods.
func ReadyOrSucceeded(job *batchv1.Job) int32 {
	done := job.Status.Succeeded + ptr.Deref(job.Status.Ready, 0)
	if uncounted := job.Status.UncountedTerminatedPods; uncounted != nil {
		done += int32(len(uncounted.Succeeded))
	}
	return done
}

// TrueCondition returns the Job's condition of this type if it is True, else nil.
func TrueCondition(job *batchv1.Job, kind batchv1.JobConditionType) *batchv1.JobCondition {
	return pointers.First(job.Status.Conditions, func(c *batchv1.JobCondition) bool {
		return c.Type == kind && c.Status == corev1.ConditionTrue
	})
}

// HasEnded reports whether the Job controller has declared the Job complete or failed.
func HasEnded(job *batchv1.Job) bool {
	return EndCondition(job) != nil
}

// EndCondition returns the condition that says how the Job has ended, nil if it has not.
func EndCondition(job *batchv1.Job) *batchv1.JobCondition {
	return cmp.Or(TrueCondition(job, batchv1.JobComplete), TrueCondition(job, batchv1.JobFailed))
}

// IsDecided reports whether it is decided how the Job ends, even if some of its pods still run.
func IsDecided(job *batchv1.Job) bool {
	return HasEnded(job) || TrueCondition(job, batchv1.JobSuccessCriteriaMet) != nil ||
		TrueCondition(job, batchv1.JobFailureTarget) != nil
}

// HasNoPods reports whether a Job has no pods and will get none: it has ended, or it is suspended and the Job
// controller has observed that. A Job that was created suspended and never changed cannot have had any. The count in
// the status alone does not tell: it follows the pods that the Job controller creates.
func HasNoPods(job *batchv1.Job) bool {
	switch {
	case job.Status.Active > 0 || ptr.Deref(job.Status.Terminating, 0) > 0:
		return false
	case HasEnded(job):
		return true
	}
	return ptr.Deref(job.Spec.Suspend, false) && (job.Generation <= 1 || TrueCondition(job, batchv1.JobSuspended) != nil)
}

// Stop returns the write that suspends a running Job. If the Job controller has not observed yet that the Job was
// resumed, but may have created pods, the status still says that the Job is suspended, which would count as the answer
// to this suspension. Therefore that is removed first; the Job is suspended in the next plan, with the event
// that says why, if any.
func Stop(job *batchv1.Job, why ...write.Event) write.Write {
	if TrueCondition(job, batchv1.JobSuspended) != nil {
		stopped := job.DeepCopy()
		stopped.Status.Conditions = slices.DeleteFunc(stopped.Status.Conditions,
			func(c batchv1.JobCondition) bool { return c.Type == batchv1.JobSuspended })
		return write.ChangeStatus(job, stopped)
	}
	return Suspend(job).WithEvent(why...)
}

// Suspend returns the write that sets spec.suspend of the Job.
func Suspend(job *batchv1.Job) write.Write {
	suspended := job.DeepCopy()
	suspended.Spec.Suspend = ptr.To(true)
	return write.Change(job, suspended)
}

// Stops reports whether one of the writes suspends the Job, which runs.
func Stops(writes []write.Write, job *batchv1.Job) bool {
	return !ptr.Deref(job.Spec.Suspend, false) && slices.ContainsFunc(writes, func(w write.Write) bool {
		stopped, is := w.Object().(*batchv1.Job)
		return is && w.Verb() == write.VerbChange && stopped.UID == job.UID && ptr.Deref(stopped.Spec.Suspend, false)
	})
}

// Shrink returns the write that takes pods, and their quota, from a running Job. The status of a Job does not say of
// which size it is: while it counts fewer pods than the Job is to have, the Job controller may have created more, and
// once the Job is smaller these would seem to be gone. Therefore all of them are counted first, until the Job
// controller writes its next status; the Job is made smaller in the next plan, with the event that says why, if any.
func Shrink(job, smaller *batchv1.Job, why ...write.Event) write.Write {
	if pods := PodsLeft(job); job.Status.Active < pods {
		counted := job.DeepCopy()
		counted.Status.Active = pods
		return write.ChangeStatus(job, counted)
	}
	return write.Change(job, smaller).WithEvent(why...)
}
