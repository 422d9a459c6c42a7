package jobset

import (
	"cmp"
	"slices"
	"strconv"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
)

// children are the Jobs of a JobSet by how they fare, each list in the order of
// names.
type children struct {
	// previous belong to an attempt that is over; the rest to the present one.
	previous                  []*batchv1.Job
	active, succeeded, failed []*batchv1.Job
}

// sortChildren sorts Jobs by how they fare. A Job that does not say which attempt
// it belongs to was tampered with and counts as of the present one.
func sortChildren(list []*batchv1.Job, restarts int32) children {
	slices.SortFunc(list, func(a, b *batchv1.Job) int { return cmp.Compare(a.Name, b.Name) })
	var c children
	for _, job := range list {
		attempt, err := strconv.ParseInt(job.Labels[jobset.RestartAttemptKey], 10, 32)
		switch {
		case err == nil && int32(attempt) < restarts:
			c.previous = append(c.previous, job)
		case is(job, batchv1.JobComplete):
			c.succeeded = append(c.succeeded, job)
		case is(job, batchv1.JobFailed):
			c.failed = append(c.failed, job)
		default:
			c.active = append(c.active, job)
		}
	}
	return c
}

// current are the Jobs of the present attempt.
func (c children) current() []*batchv1.Job {
	return slices.Concat(c.active, c.succeeded, c.failed)
}

func (c children) all() []*batchv1.Job { return slices.Concat(c.previous, c.current()) }

// names are the names that are taken, be it by a Job of an earlier attempt.
func (c children) names() map[string]bool {
	taken := map[string]bool{}
	for _, job := range c.all() {
		taken[job.Name] = true
	}
	return taken
}

func is(job *batchv1.Job, kind batchv1.JobConditionType) bool {
	return condition(job, kind) != nil
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

func ended(job *batchv1.Job) bool { return is(job, batchv1.JobComplete) || is(job, batchv1.JobFailed) }

func suspended(job *batchv1.Job) bool { return ptr.Deref(job.Spec.Suspend, false) }

// ready reports whether all pods of an unfinished Job are ready or have succeeded. Pods
// that have just ended are in neither count for a moment, and listed meanwhile.
func ready(job *batchv1.Job) bool {
	done := job.Status.Succeeded + ptr.Deref(job.Status.Ready, 0)
	if uncounted := job.Status.UncountedTerminatedPods; uncounted != nil {
		done += int32(len(uncounted.Succeeded))
	}
	return !ended(job) && done >= podsOf(&job.Spec)
}
