package admission

import (
	"context"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/api/muster"
	"github.com/musterhq/muster/internal/admission/lifecycle"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/workload"
)

// Thousands of decisions may be made and wait to be written when somebody stops a queue, or holds a Workload back. So
// each that gives quota, or takes it from one for another, is looked at once more when it is its turn: by what the engine
// goes by too, so that it will not decide the same again once it has heard of it, and by the cache, from which it hears.

// mayBeAdmitted reports whether nothing about the Workload itself keeps it from being admitted.
func mayBeAdmitted(w *kueue.Workload) bool {
	return w.DeletionTimestamp.IsZero() && workload.IsActive(w) && backsOff(w) == "" && w.Annotations[kueue.AdmissionGatedByAnnotation] == ""
}

// stillOpen reports whether the queues of an admission, which the Workload has already, are as they were for it: there,
// not stopped, and with the checks that it lists.
func (a *decisionWriter) stillOpen(ctx context.Context, w *kueue.Workload, given *engine.Admission) (bool, error) {
	queue, err := a.openQueue(ctx, w)
	if queue == nil || queue.Name != given.ClusterQueue {
		return false, err
	}
	return sameChecks(lifecycle.ChecksFor(&queue.Spec, w.Status.Admission), given.Checks), nil
}

// openQueue is the ClusterQueue that the Workload's LocalQueue leads to, nil if either is not there, being deleted or stopped.
func (a *decisionWriter) openQueue(ctx context.Context, w *kueue.Workload) (*kueue.ClusterQueue, error) {
	var local kueue.LocalQueue
	if err := a.client.Get(ctx, client.ObjectKey{Namespace: w.Namespace, Name: string(w.Spec.QueueName)}, &local, client.UnsafeDisableDeepCopy); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	if stopped(local.Spec.StopPolicy) || !local.DeletionTimestamp.IsZero() {
		return nil, nil
	}
	var queue kueue.ClusterQueue
	if err := a.client.Get(ctx, client.ObjectKey{Name: string(local.Spec.ClusterQueue)}, &queue, client.UnsafeDisableDeepCopy); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	if workload.Closed(&queue) || !queue.DeletionTimestamp.IsZero() {
		return nil, nil
	}
	return &queue, nil
}

// mayStillGrow reports whether the Workload, which runs in a ClusterQueue, may be given more: as one that is to be
// admitted.
func (a *decisionWriter) mayStillGrow(ctx context.Context, w *kueue.Workload, in string) (bool, error) {
	if !workload.IsActive(w) || !w.DeletionTimestamp.IsZero() {
		return false, nil
	}
	queue, err := a.openQueue(ctx, w)
	return queue != nil && queue.Name == in, err
}

// stillWanted reports whether the Workload for which others are to go or to yield may have what they leave: else they
// would for nothing. It is there, and waits in a queue that admits or runs in one in which it may grow. uid is "" where
// nobody knows it. Who goes for nobody, but because his nodes failed, goes anyhow; so are places replaced whatever his
// queue does, since he runs.
func (a *decisionWriter) stillWanted(ctx context.Context, key engine.Key, uid string) (bool, error) {
	if key == (engine.Key{}) {
		return true, nil
	}
	var w kueue.Workload
	if err := a.client.Get(ctx, objectKey(key), &w, client.UnsafeDisableDeepCopy); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	switch {
	case uid != "" && string(w.UID) != uid, workload.IsFinished(&w):
		return false, nil
	case workload.HoldsQuota(&w):
		if !isElastic(&w) {
			return false, nil // somebody else went sooner, and that was enough
		}
		return a.mayStillGrow(ctx, &w, string(w.Status.Admission.ClusterQueue))
	case !mayBeAdmitted(&w):
		return false, nil
	}
	queue, err := a.openQueue(ctx, &w)
	return queue != nil, err
}

// isElastic reports whether the Workload may grow while it runs.
func isElastic(w *kueue.Workload) bool {
	return slices.ContainsFunc(w.Spec.PodSets, func(ps kueue.PodSet) bool { return ps.Template.Annotations[muster.MinReplicasAnnotation] != "" })
}

// sameChecks compares in any order.
func sameChecks(is []kueue.AdmissionCheckReference, listed []string) bool {
	return len(is) == len(listed) &&
		!slices.ContainsFunc(is, func(name kueue.AdmissionCheckReference) bool { return !slices.Contains(listed, string(name)) })
}
