package batchjob

import (
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/utils/ptr"

	"github.com/musterhq/muster/internal/jobs"
)

// An elastic Job is an Elastic Indexed Job of Kubernetes whose size the queue chooses: parallelism and completions
// change together, so that the pods with the highest indexes go and come back. Other Jobs have no order in which their
// pods go: the Job controller would stop any of them.

// hasElasticShape reports whether Jobs with this spec may change their size: Indexed Jobs that run all their pods at
// once.
func hasElasticShape(spec *batchv1.JobSpec) bool {
	return ptr.Deref(spec.CompletionMode, batchv1.NonIndexedCompletion) == batchv1.IndexedCompletion &&
		spec.Completions != nil && *spec.Completions == ptr.Deref(spec.Parallelism, 1)
}

// boundsOf returns between which numbers of pods the queue may resize the Job, which is as its user made it.
func boundsOf(original *batchv1.Job) jobs.Bounds {
	if !hasElasticShape(&original.Spec) {
		return jobs.BoundsOf(nil, podsOf(&original.Spec))
	}
	return jobs.BoundsOf(original.Spec.Template.Annotations, podsOf(&original.Spec))
}

// elasticSize returns how many pods the Job may run: as many as were granted. Once an index is done the Job is about to
// end, and does not grow any more.
func elasticSize(job *batchv1.Job, b jobs.Bounds, granted jobs.PodSetAdmission) int32 {
	size := b.Size(granted.Count)
	if finalCompletions(job) > 0 {
		return min(size, podsOf(&job.Spec))
	}
	return size
}

// setSize gives the Job this many pods. With none its completions stay, since a Job without any is complete.
func setSize(job *batchv1.Job, size int32) {
	job.Spec.Parallelism = ptr.To(size)
	if size > 0 {
		job.Spec.Completions = ptr.To(size)
	}
}

// resize gives a running elastic Job the size that the queue chose. Where its user has just set another one, which is
// remembered as what the Job asks for, an event says what became of it.
func resize(p *jobs.Plan, job *batchv1.Job, b jobs.Bounds, granted jobs.PodSetAdmission) {
	size := elasticSize(job, b, granted)
	original, resized := restored(job), job.DeepCopy()
	setSize(resized, size)
	if ptr.Equal(job.Spec.Parallelism, resized.Spec.Parallelism) && ptr.Equal(job.Spec.Completions, resized.Spec.Completions) {
		return
	}
	recordReplaced(resized, replaced(original, resized).sized(size))
	change := jobs.Change(job, resized)
	if asked := podsOf(&original.Spec); recordedIn(job).setByUser(job) && asked != size {
		change = change.WithEvent(jobs.Warning(queueDecidesReason, fmt.Sprintf(
			"spec.parallelism is %d again: the queue chooses how many pods this Job has, from %d to %d until it is admitted anew",
			size, b.Least, min(b.Most, granted.Asked))))
	}
	p.Writes = append(p.Writes, change)
}

// elasticProgress completes the progress of a running elastic Job: its minimum of pods is enough, so that growing does
// not make it unready, and the queue is told how many pods use quota.
func elasticProgress(p *jobs.Progress, job *batchv1.Job, b jobs.Bounds, granted jobs.PodSetAdmission) {
	done := job.Status.Succeeded + ptr.Deref(job.Status.Ready, 0)
	p.Ready = p.Ready || !suspended(job) && outcome(job) == nil && done >= b.Least
	// The queue decides how many pods there are. Only of a Job that is about to end, and must not grow any more, are
	// ended pods reported, and no more than the pods that were not granted, so that no granted quota is given away.
	p.Reclaimable = map[string]int32{string(podSet): max(0, min(finalCompletions(job), granted.Asked-granted.Count))}
	// What the status counts is of another size, or of none, until the Job controller has observed this one.
	if !suspended(job) && job.Status.StartTime != nil && podsOf(&job.Spec) <= elasticSize(job, b, granted) {
		p.Pods = map[string]int32{string(podSet): job.Status.Active + ptr.Deref(job.Status.Terminating, 0)}
	}
}
