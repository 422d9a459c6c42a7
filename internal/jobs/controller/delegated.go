package controller

import (
	"context"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/jobs/workloads"
	"github.com/musterhq/muster/internal/workload"
)

// If a job's children are queued, or once were, its quota is held either by its own Workload or by a child's, never by
// both.

// heldByChild reports whether a child's Workload holds quota for what the job runs, and the job has no Workload itself.
func (r *reader[T]) heldByChild(ctx context.Context, o *observed[T]) (bool, error) {
	if !o.state.Described.HeldByChild || o.state.Followed != nil {
		return false, nil
	}
	for _, child := range o.seen.Children {
		gvk, err := r.client.GroupVersionKindFor(child)
		if err != nil {
			return false, err
		}
		for _, name := range workloads.Names(gvk, child.GetName(), child.GetUID()) {
			var w kueue.Workload
			key := client.ObjectKey{Namespace: child.GetNamespace(), Name: name}
			switch err := r.client.Get(ctx, key, &w); {
			case err == nil && workload.HoldsQuota(&w) && !workload.IsFinished(&w):
				return true, nil
			case client.IgnoreNotFound(err) != nil:
				return false, fmt.Errorf("reading Workload %s: %w", key, err)
			}
		}
	}
	return false, nil
}

// holdDelegated makes a job that once queued itself, before the jobs that it creates did, keep that quota until the
// pods that ran with it are gone. Pods that run with the quota of the jobs that it creates carry the labels of the
// created jobs.
func (r *reconciler[T]) holdDelegated(ctx context.Context, plan *jobs.Plan, own *kueue.Workload, now time.Time) error {
	if !r.api.Queueing.Delegates || own == nil || own.DeletionTimestamp.IsZero() {
		return nil
	}
	left, err := r.read.podsLeft(ctx, own)
	if left {
		plan.Progress.Active = true
		plan.DueBy(now.Add(nextPoll(now.Sub(own.DeletionTimestamp.Time))))
	}
	return err
}
