package admission

import (
	"context"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/admission/lifecycle"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/workload"
)

// Thousands of admissions may be decided and wait to be written when somebody stops a queue, or holds a Workload back. So
// each is looked at once more when it is its turn: by what the engine goes by too, so that it will not decide the same
// again once it has heard of it, and by the cache, from which it hears.

// mayBeAdmitted reports whether nothing about the Workload itself keeps it from being admitted.
func mayBeAdmitted(w *kueue.Workload) bool {
	return w.DeletionTimestamp.IsZero() && workload.IsActive(w) && backsOff(w) == "" && w.Annotations[kueue.AdmissionGatedByAnnotation] == ""
}

// stillOpen reports whether the queues of an admission, which the Workload has already, are as they were for it: there,
// not stopped, and with the checks that it lists.
func (a *decisionWriter) stillOpen(ctx context.Context, w *kueue.Workload, given *engine.Admission) (bool, error) {
	var local kueue.LocalQueue
	if err := a.client.Get(ctx, client.ObjectKey{Namespace: w.Namespace, Name: string(w.Spec.QueueName)}, &local, client.UnsafeDisableDeepCopy); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	if stopped(local.Spec.StopPolicy) || string(local.Spec.ClusterQueue) != given.ClusterQueue {
		return false, nil
	}
	var queue kueue.ClusterQueue
	if err := a.client.Get(ctx, client.ObjectKey{Name: given.ClusterQueue}, &queue, client.UnsafeDisableDeepCopy); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	if closed(&queue) || !queue.DeletionTimestamp.IsZero() {
		return false, nil
	}
	return sameChecks(lifecycle.ChecksFor(&queue.Spec, w.Status.Admission), given.Checks), nil
}

// sameChecks compares in any order.
func sameChecks(is []kueue.AdmissionCheckReference, listed []string) bool {
	return len(is) == len(listed) &&
		!slices.ContainsFunc(is, func(name kueue.AdmissionCheckReference) bool { return !slices.Contains(listed, string(name)) })
}
