package controller

import (
	"context"
	"fmt"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/api/muster"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/jobs/write"
	"github.com/musterhq/muster/internal/workload"
)

// A JobSet stops, counts and starts the Jobs that it controls. A Job of a queued JobSet that lost its owner reference
// would run on while the JobSet gives its quota to others. The policy muster-job-queued lets no user remove that
// reference. For a Job that lost it all the same:
//
//   - While its JobSet exists, the Job is still counted and stopped as one of the JobSet's, and the JobSet becomes its
//     controller again.
//   - A JobSet that was deleted without its Jobs (orphans.go) leaves a Workload that holds their quota. While the
//     Workload does, the Jobs run on.
//   - A Job that nobody holds quota for is suspended. Its user can queue it by itself.

// noQuotaReason and noQuotaMessage are of the event on a Job that is suspended since nobody holds quota for it.
const (
	noQuotaReason  = "NoQuota"
	noQuotaMessage = "The Job is suspended: it was created for a job in a queue that controls it no more, and nothing holds quota for it. " +
		"To queue it by itself, set the label " + kueue.QueueLabel + " to the name of a queue"
)

// adopt adds to the plan that the job becomes the controller of its children that have none. Whether the job lives is
// read from the API server: the garbage collector takes the Jobs from a JobSet that is deleted without them, and would
// delete Jobs that got that JobSet as their controller again.
func (r *reconciler[T]) adopt(ctx context.Context, seen jobs.Seen[T], p *jobs.Plan) error {
	if r.api.Watch.MadeFor == nil || r.api.Queueing.CreatesJob == nil {
		return nil
	}
	var lost []client.Object
	for _, child := range seen.Children {
		if metav1.GetControllerOfNoCopy(child) == nil && child.GetDeletionTimestamp().IsZero() &&
			r.api.Queueing.CreatesJob(seen.Job, child) {
			lost = append(lost, child)
		}
	}
	if len(lost) == 0 {
		return nil
	}
	now := r.api.New()
	switch err := r.read.live.Get(ctx, client.ObjectKeyFromObject(seen.Job), now); {
	case client.IgnoreNotFound(err) != nil:
		return fmt.Errorf("reading the owner of Job %s: %w", lost[0].GetName(), err)
	case err != nil || now.GetUID() != seen.Job.GetUID() || !now.GetDeletionTimestamp().IsZero():
		return nil
	}
	for _, child := range lost {
		p.ControlledBy(child, *metav1.NewControllerRef(seen.Job, r.api.Kind))
	}
	return nil
}

// planOfNobody returns the plan for a job of an external kind that is in no queue, and that no other job is queued for:
// it is left alone, unless the operator has created it for a job that held quota for it, and nothing holds that any
// more.
func (r *reconciler[T]) planOfNobody(ctx context.Context, object T) (jobs.Plan, error) {
	job, is := any(object).(*batchv1.Job)
	if !is || job.Annotations[muster.QueuedAnnotation] != muster.QueuedByOwner {
		return leftAlone(object), nil
	}
	if ptr.Deref(job.Spec.Suspend, false) || jobs.HasEnded(job) {
		return jobs.Plan{}, nil
	}
	var uid types.UID
	for _, api := range r.apis {
		if uid == "" {
			uid = api.madeFor(job)
		}
	}
	switch held, err := r.read.holdsQuotaFor(ctx, job.Namespace, uid); {
	case err != nil:
		return jobs.Plan{}, err
	case held:
		return jobs.Plan{Due: r.clock.Now().Add(longestPoll)}, nil // no event reports when the quota is released
	}
	return jobs.Plan{Batch: write.Batch{
		Writes: []write.Write{jobs.Suspend(job).WithEvent(write.Warning(noQuotaReason, noQuotaMessage))}}}, nil
}

// holdsQuotaFor reports whether a Workload in the namespace holds quota for the job with the UID, which may be gone.
func (r *reader[T]) holdsQuotaFor(ctx context.Context, namespace string, uid types.UID) (bool, error) {
	if uid == "" {
		return false, nil
	}
	var list kueue.WorkloadList
	err := r.client.List(ctx, &list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy,
		client.MatchingLabels{kueue.JobUIDLabel: string(uid)})
	if err != nil {
		return false, fmt.Errorf("listing the Workloads of the job %s in %s: %w", uid, namespace, err)
	}
	return slices.ContainsFunc(list.Items,
		func(w kueue.Workload) bool { return workload.HoldsQuota(&w) && !workload.IsFinished(&w) }), nil
}
