package controller

import (
	"context"
	"errors"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/api/muster"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/jobs/write"
	"github.com/musterhq/muster/internal/pointers"
	"github.com/musterhq/muster/internal/workload"
)

// A job that is being deleted is not planned any more, so that nothing starts it again. Most are gone at once, with all
// that they own. But anyone may give a job a finalizer, which keeps the job for as long as its owner likes. Until then
// the garbage collector leaves the pods, the Jobs of a JobSet, and the Workload alone, and the Job controller neither
// creates nor deletes pods of a Job that is being deleted, suspended or not. So the operator itself ends what the job
// has:
//
//   - If its Workload is evicted, or has no quota, the pods are deleted. The Jobs of a JobSet, which would replace
//     their pods, are suspended first.
//   - Once no pods are left, the Workload is deleted: nothing is to be admitted for the job, and nothing keeps quota
//     for it.
//
// For example, a user gives a job that runs a finalizer and deletes it. The pods run on, with quota. When the queue
// evicts the job for another one, the pods are deleted, and the second job gets the quota, while the deleted job is
// still there.

// endDeleted ends what a job that is being deleted has in its queue. It returns after how long to look again, 0 for
// never.
func (r *reconciler[T]) endDeleted(ctx context.Context, job T) (wait time.Duration, err error) {
	list, err := r.read.workloadsOf(ctx, r.api.kind(), client.ObjectKeyFromObject(job))
	if err != nil {
		return 0, err
	}
	children, err := r.read.children(ctx, job)
	if err != nil {
		return 0, err
	}
	creating := slices.DeleteFunc(jobs.ChildrenOf[*batchv1.Job](children),
		func(child *batchv1.Job) bool { return !mayCreatePods(child) })
	of := r.inQueue(job)
	var errs []error
	for w := range pointers.To(list) {
		if of.Controls(w) && !workload.IsFinished(w) {
			again, err := r.endDeletedIn(ctx, job, w, creating)
			wait, errs = earlierRetry(wait, again), append(errs, err)
		}
	}
	return wait, errors.Join(errs...)
}

// endDeletedIn deletes the pods of a job that is being deleted, if this Workload of the job is evicted or has no quota,
// and the Workload once no pods are left. It returns after how long to look again, 0 for never. creating are the job's
// Jobs that may create pods.
func (r *reconciler[T]) endDeletedIn(ctx context.Context, job T, w *kueue.Workload,
	creating []*batchv1.Job) (time.Duration, error) {
	since, evicted := r.clock.Since(job.GetDeletionTimestamp().Time), workload.IsEvicted(w)
	switch {
	case !evicted && !w.DeletionTimestamp.IsZero() && len(creating) == 0:
		return 0, nil // releaseWorkloads waits for the pods
	case !evicted && since < podsLeftPoll:
		return podsLeftPoll - since, nil // the garbage collector ends most jobs by then
	}
	pods, err := runningPods(ctx, r.read.live, w, r.api.podLabels(job.GetUID()))
	if err != nil {
		return 0, err
	}
	var batch write.Batch
	left := len(pods) > 0 || len(creating) > 0
	// The garbage collector takes the Workload from a job that is deleted without its dependents.
	orphaned := slices.Contains(job.GetFinalizers(), metav1.FinalizerOrphanDependents)
	switch {
	case left && (evicted || !workload.HoldsQuota(w)):
		batch.Writes = stopPods(pods, creating)
	case !left && w.DeletionTimestamp.IsZero() && !orphaned:
		batch.Add(write.Delete(w))
	}
	if err := r.executor.Run(ctx, job, batch); err != nil && !write.IsOvertaken(err) && !write.IsConflict(err) {
		return 0, err
	}
	if !left {
		return 0, nil // the deletion of the Workload, or of the job, leads to the next reconcile
	}
	return nextPoll(since), nil
}

// stopPods returns the writes that delete the pods, whatever controls them by now. The Jobs would replace the pods, and
// are suspended instead: the Job controller then deletes their pods, and pods that are there afterwards are deleted
// too.
func stopPods(pods []metav1.PartialObjectMetadata, creating []*batchv1.Job) (writes []write.Write) {
	suspending := map[types.UID]bool{}
	for _, job := range creating {
		if !ptr.Deref(job.Spec.Suspend, false) {
			writes = append(writes, jobs.Suspend(job).Marked(muster.QueuedByOwner))
			suspending[job.UID] = true
		}
	}
	for pod := range pointers.To(pods) {
		if c := metav1.GetControllerOfNoCopy(pod); pod.DeletionTimestamp.IsZero() && (c == nil || !suspending[c.UID]) {
			writes = append(writes, write.Delete(&corev1.Pod{ObjectMeta: pod.ObjectMeta}))
		}
	}
	return writes
}

// mayCreatePods reports whether the Job controller may create pods of the Job, such as one in place of a pod that has
// failed.
func mayCreatePods(job *batchv1.Job) bool {
	return !jobs.HasEnded(job) && !ptr.Deref(job.Spec.Suspend, false) && job.DeletionTimestamp.IsZero()
}

// lookAtUnruled looks at the batch Jobs that the Job controller does not do as they say: Jobs that are being deleted,
// and Jobs that get no answer.
func (r *reconciler[T]) lookAtUnruled(ctx context.Context, seen *jobs.Seen[T], own *kueue.Workload) (silent, error) {
	stops, due, err := r.stopDeletedJobs(ctx, seen, own)
	if err != nil {
		return silent{}, err
	}
	out, err := r.lookAtSilent(ctx, seen, own)
	out.touches = append(out.touches, stops...)
	if !due.IsZero() && (out.due.IsZero() || due.Before(out.due)) {
		out.due = due
	}
	return out, err
}

// stopDeletedJobs ends the pods of the Jobs that are being deleted, of a job that is to have no pods: a finalizer may
// keep them. Jobs without pods are replaced in seen by suspended ones that the Job controller has answered, as it will
// not. own is the job's Workload, nil if there is none.
func (r *reconciler[T]) stopDeletedJobs(ctx context.Context, seen *jobs.Seen[T],
	own *kueue.Workload) (writes []write.Write, due time.Time, err error) {
	if own == nil || seen.Admission.MayRun() {
		return nil, time.Time{}, nil
	}
	deleted := slices.DeleteFunc(jobs.ChildrenOf[*batchv1.Job](seen.Children), func(child *batchv1.Job) bool {
		return child.DeletionTimestamp.IsZero() || jobs.HasNoPods(child)
	})
	if len(deleted) == 0 {
		return nil, time.Time{}, nil
	}
	pods, err := runningPods(ctx, r.read.live, own, r.api.podLabels(seen.Job.GetUID()))
	if err != nil {
		return nil, time.Time{}, err
	}
	var vacant []*batchv1.Job
	for _, job := range deleted {
		its := slices.DeleteFunc(slices.Clone(pods), func(pod metav1.PartialObjectMetadata) bool {
			return pod.Labels[batchv1.ControllerUidLabel] != string(job.UID)
		})
		writes = append(writes, stopPods(its, nil)...)
		if len(its) == 0 {
			vacant = append(vacant, job)
		}
	}
	takeForSuspended(seen, vacant)
	if len(vacant) < len(deleted) {
		due = seen.Now.Add(podsLeftPoll)
	}
	return writes, due, nil
}
