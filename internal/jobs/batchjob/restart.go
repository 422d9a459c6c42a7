package batchjob

import (
	"fmt"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/jobs/write"
)

// A Job that restarts as a whole, see jobs.RestartsWhole, is an Indexed Job that runs all its pods at once. For
// example, index 0 of 4 is done when the Job is evicted. What follows is found in the Job and its pods at each step:
//
//  1. The Job is suspended and restored, as any other. Its status still says that index 0 is done.
//  2. The pod of index 0 is deleted: it would count as a pod that needs no place any more.
//  3. The status is changed to say that no index is done. The API server allows that only of an Indexed Job that runs
//     all its pods at once.
//  4. The quota is returned, and the Job queues for 4 pods.
//
// An index that has failed for good stays failed.

// completedPods selects, while a Job is to be restarted, its pods.
var completedPods = &jobs.PodsOf[*batchv1.Job]{
	Labels: func(job *batchv1.Job) map[string]string {
		if !isToRestart(job) {
			return nil
		}
		return map[string]string{batchv1.ControllerUidLabel: string(job.UID)}
	},
}

// podsGonePoll is how often the pods of a Job that is to be restarted are read until the Job controller has let them
// go.
const podsGonePoll = 250 * time.Millisecond

// The events about it.
const (
	restartIgnoredReason  = "RestartWholeIgnored"
	restartIgnoredMessage = "The annotation muster.dev/restart-whole has no effect: only an Indexed Job with as many completions as parallelism can run its indexes again." +
		" After an eviction, the Job goes on with what is not done"
	restartsWholeMessage = "The Job was stopped when %d of its %d indexes were done: all of them are run again"
)

// isToRestart reports whether the Job runs all its indexes again before its next start. Until it is restored, it has
// not stopped.
func isToRestart(job *batchv1.Job) bool {
	return jobs.RestartsWhole(job) && !hasStarted(job) && hasElasticShape(job) && isPartlyDone(job)
}

// isPartlyDone reports whether some indexes of the Job are done, and some are to be run. The end of a Job may be
// decided before all are.
func isPartlyDone(job *batchv1.Job) bool {
	return !jobs.IsDecided(job) && doneIndexes(job) > 0 && jobs.FinalCompletions(job) < ptr.Deref(job.Spec.Completions, 0)
}

func doneIndexes(job *batchv1.Job) int32 {
	return jobs.CountIndexes(job.Status.CompletedIndexes, ptr.Deref(job.Spec.Completions, 0))
}

// asNew returns the Job as if none of its indexes were done.
func asNew(job *batchv1.Job) *batchv1.Job {
	out := job.DeepCopy()
	out.Status.Succeeded, out.Status.CompletedIndexes = 0, ""
	return out
}

// restoredWhole returns the Job as it was before its start, for a Job that has stopped. An elastic Job whose size was
// settled, because an index was done, gets the size that it asked for if all indexes are run again.
func restoredWhole(job *batchv1.Job) *batchv1.Job {
	if jobs.RestartsWhole(job) && isPartlyDone(job) {
		whole := restored(asNew(job))
		whole.Status = *job.Status.DeepCopy()
		if isToRestart(whole) {
			return whole
		}
	}
	return restored(job)
}

// awaitsRestart reports whether the Job needs all its pods again, and neither starts nor returns its quota before its
// indexes can be run again. One that was admitted with less, before the annotation was set, goes on with the rest.
func awaitsRestart(seen jobs.Seen[*batchv1.Job]) bool {
	if seen.MustGoOn || !isToRestart(seen.Job) {
		return false
	}
	granted, admitted := seen.Admission.PodSets[string(podSet)]
	return !admitted || granted.Left >= jobs.PodsAtATime(&seen.Job.Spec)
}

// restart makes a Job without pods one of which no index is done.
func restart(p *jobs.Plan, seen jobs.Seen[*batchv1.Job]) {
	job := seen.Job
	if u := job.Status.UncountedTerminatedPods; u != nil && len(u.Succeeded)+len(u.Failed) > 0 {
		return // the Job controller is about to count them
	}
	if waits := deleteCompleted(p, seen); waits {
		return
	}
	event := write.Warning(jobs.RestartsWholeReason,
		fmt.Sprintf(restartsWholeMessage, doneIndexes(job), *job.Spec.Completions))
	p.Add(write.ChangeStatus(job, asNew(job)).OrGoOn(jobs.RestartWholeRefusedReason).WithEvent(event))
}

// deleteCompleted deletes the pods that have succeeded, and reports whether to wait for them: the Job controller would
// count one that has its finalizer again. A pod that only somebody else's finalizer keeps is not waited for, or its
// owner could keep the quota with it.
func deleteCompleted(p *jobs.Plan, seen jobs.Seen[*batchv1.Job]) (waits bool) {
	for _, pod := range seen.Pods {
		if !metav1.IsControlledBy(pod, seen.Job) || pod.Status.Phase == corev1.PodFailed {
			continue
		}
		switch {
		case pod.Status.Phase != corev1.PodSucceeded: // the Job says that it has ended; the cache is behind
		case pod.DeletionTimestamp.IsZero():
			p.Add(write.Delete(pod).OrGoOn(jobs.RestartWholeRefusedReason))
			p.DueIfDone = seen.Now // pods are not watched here
		case !slices.Contains(pod.Finalizers, batchv1.JobTrackingFinalizer):
			continue
		}
		waits = true
	}
	if waits && !seen.MustGoOn {
		p.DueBy(seen.Now.Add(podsGonePoll))
	}
	return waits
}

// warnOfNoRestart says that the Job cannot be restarted as a whole. One that is to run no pods for now may be later.
func warnOfNoRestart(p *jobs.Plan, job *batchv1.Job) {
	if asked := restored(asNew(job)); jobs.RestartsWhole(job) && !hasElasticShape(asked) && !paused(asked) {
		p.AddEvents(write.Obstacle(restartIgnoredReason, restartIgnoredMessage))
	}
}
