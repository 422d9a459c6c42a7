package batchjob

import (
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/utils/ptr"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/api/muster"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/jobs/write"
)

// An elastic Job is an Elastic Indexed Job of Kubernetes whose size the queue chooses: parallelism and completions
// change together, so that the pods with the highest indexes go and come back. Other Jobs have no order in which their
// pods go: the Job controller would stop any of them.
//
// Once an index is done, the size is settled. Fewer completions could make the Job complete although pods that run have
// work left, and the Job controller forgets that an index beyond them is done, so that it would be run again. If the
// queue has shrunk a settled Job nevertheless, fewer of the remaining indexes run at once.

// hasElasticShape reports whether the Job may change its size: it is Indexed, and runs all its pods at once.
func hasElasticShape(job *batchv1.Job) bool {
	return jobs.Indexed(job) && job.Spec.Completions != nil && *job.Spec.Completions == ptr.Deref(job.Spec.Parallelism, 1)
}

// isSettled reports whether the size of an elastic Job no longer changes.
func isSettled(job *batchv1.Job) bool { return jobs.FinalCompletions(job) > 0 }

// boundsOf returns between which numbers of pods the queue may resize the Job, which is as its user made it.
func boundsOf(original *batchv1.Job) jobs.Bounds {
	pods := jobs.PodsAtATime(&original.Spec)
	if !hasElasticShape(original) {
		return jobs.BoundsOf(nil, pods)
	}
	b := jobs.BoundsOf(original.Spec.Template.Annotations, pods)
	if b.Elastic && isSettled(original) {
		b.Least, b.Most = min(b.Least, pods), pods
	}
	return b
}

// admittedBounds returns the bounds that hold for the admitted Job. One that an earlier version of Muster admitted or
// started with a fixed number of pods keeps that, and its completions, until its next admission.
func admittedBounds(job, original *batchv1.Job, granted jobs.PodSetAdmission) jobs.Bounds {
	b := granted.Bounds(boundsOf(original))
	b.Elastic = b.Elastic && granted.ChoseCount() && (!hasStarted(job) || recordedIn(job).Size != nil)
	return b
}

// setSize gives the Job this many pods. With none its completions stay, since a Job without any is complete. With fewer
// than the minimum, which only its user can ask for, they stay too: successPolicy and maxFailedIndexes may need that
// many, without which the API server would refuse the change.
func setSize(job *batchv1.Job, size int32) {
	job.Spec.Parallelism = ptr.To(size)
	if least, _ := jobs.ReplicasIn(job.Spec.Template.Annotations, muster.MinReplicasAnnotation); size >= max(least, 1) {
		job.Spec.Completions = ptr.To(size)
	}
}

// resize gives a running elastic Job the size that the queue chose. If its user has just set another size, that size is
// remembered as what the Job asks for, and an event says what became of it.
func resize(p *jobs.Plan, job *batchv1.Job, b jobs.Bounds, granted jobs.PodSetAdmission) {
	size := b.Size(granted.Count)
	original, resized := restored(job), job.DeepCopy()
	setSize(resized, size)
	sameSize := ptr.Equal(job.Spec.Parallelism, resized.Spec.Parallelism) &&
		ptr.Equal(job.Spec.Completions, resized.Spec.Completions)
	if sameSize && boundsUsers(job, granted) && !wantsMore(job, size) {
		return
	}
	recordGrant(resized, granted)
	if was := recordedIn(job); paused(job) && was.Size != nil {
		// Its user still wants the pods that it had before.
		was.Parallelism = ptr.To(was.wanted())
		recordReplaced(resized, was.sized(granted.Count))
	} else {
		recordReplaced(resized, replaced(original, resized).sized(size))
	}
	var reverted []write.Event
	if asked := jobs.PodsAtATime(&original.Spec); recordedIn(job).setByUser(job) && asked != size {
		why := fmt.Sprintf("the queue chooses how many pods this Job has, from %d to %d until it is admitted anew", b.Least,
			min(b.Most, granted.Asked))
		if granted.Tied {
			why = "pods that are placed in slices or a group do not become more until the Job is admitted anew"
		}
		reverted = []write.Event{
			write.Warning(queueDecidesReason, fmt.Sprintf("spec.parallelism is %d again: %s", size, why))}
	}
	p.Add(changeSize(job, resized, granted, reverted...))
}

// wantsMore reports whether the user of the Job of this size has set a larger one, which the API server has put back.
func wantsMore(job *batchv1.Job, size int32) bool {
	set, is := recordedIn(job).userSize(job)
	return is && set > size
}

// changeSize returns the write that changes the size of a running Job, with the event that says why, if any. Where the
// queue chose more pods before, the quota of the pods that it takes back is released once they are gone. Pods that only
// the user has added never had quota, and are removed at once.
func changeSize(job, resized *batchv1.Job, granted jobs.PodSetAdmission, why ...write.Event) write.Write {
	if before := recordedIn(job).Size; before != nil && granted.Count < *before {
		return jobs.Shrink(job, resized, why...)
	}
	return write.Change(job, resized).WithEvent(why...)
}

// elasticProgress completes the progress of a running elastic Job: its minimum of pods is enough, so that growing does
// not make it unready. Ended pods are reported only of a settled one, which the queue no longer resizes then.
func elasticProgress(p *jobs.Progress, job *batchv1.Job, b jobs.Bounds, granted jobs.PodSetAdmission) {
	done := job.Status.Succeeded + ptr.Deref(job.Status.Ready, 0)
	p.Ready = p.Ready || !suspended(job) && done >= b.Least
	var unneeded int32
	if isSettled(job) {
		unneeded = max(0, granted.Asked-(ptr.Deref(job.Spec.Completions, 0)-jobs.FinalCompletions(job)))
	}
	p.Reclaimable = map[string]int32{string(podSet): unneeded}
}

// syncsCompletions reports whether completions follow parallelism.
func syncsCompletions(job *batchv1.Job) bool {
	return job.Annotations[kueue.JobCompletionsEqualParallelismAnnotation] == "true"
}

// paused reports whether the Job is to run no pods for now.
func paused(job *batchv1.Job) bool { return ptr.Deref(job.Spec.Parallelism, 1) == 0 }
