package decisions

import (
	"context"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/api/muster"
	"github.com/musterhq/muster/internal/admission/lifecycle"
	"github.com/musterhq/muster/internal/admission/translate"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/engine/place"
	"github.com/musterhq/muster/internal/workload"
)

// Thousands of decisions may wait to be written when a queue is stopped or a Workload is held back. So each decision
// that gives quota, or takes it from one Workload for another, is checked once more before its write. The check uses
// the same rules as the engine, so that the engine will not repeat the decision, and the cache that feeds the engine.

// stillOpen reports whether the queues of an admission, already set on the Workload, are still as the decision assumed:
// present, not stopped, and with the same admission checks.
func (wr *Writer) stillOpen(ctx context.Context, w *kueue.Workload, given *engine.Admission) (bool, error) {
	queue, err := wr.openQueue(ctx, w)
	if queue == nil || queue.Name != given.ClusterQueue {
		return false, err
	}
	return sameChecks(lifecycle.ChecksFor(&queue.Spec, w.Status.Admission), given.Checks), nil
}

// openQueue returns the ClusterQueue of the Workload's LocalQueue, nil if either is missing, terminating or stopped.
func (wr *Writer) openQueue(ctx context.Context, w *kueue.Workload) (*kueue.ClusterQueue, error) {
	var local kueue.LocalQueue
	if err := wr.client.Get(ctx, client.ObjectKey{Namespace: w.Namespace, Name: string(w.Spec.QueueName)}, &local,
		client.UnsafeDisableDeepCopy); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	if translate.Stopped(local.Spec.StopPolicy) || !local.DeletionTimestamp.IsZero() {
		return nil, nil
	}
	var queue kueue.ClusterQueue
	if err := wr.client.Get(ctx, client.ObjectKey{Name: string(local.Spec.ClusterQueue)}, &queue,
		client.UnsafeDisableDeepCopy); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	if workload.Closed(&queue) || !queue.DeletionTimestamp.IsZero() {
		return nil, nil
	}
	return &queue, nil
}

// mayStillGrow reports whether the Workload, which runs in the named ClusterQueue, may be given more, by the rules
// for an admission.
func (wr *Writer) mayStillGrow(ctx context.Context, w *kueue.Workload, in string) (bool, error) {
	if !workload.IsActive(w) || !w.DeletionTimestamp.IsZero() {
		return false, nil
	}
	queue, err := wr.openQueue(ctx, w)
	return queue != nil && queue.Name == in, err
}

// stillWanted reports whether the Workload for which others are to be preempted or shrunk can still use what they
// release. It must exist and either wait in a queue that admits, or run in one in which it may grow, or still have
// places on the nodes that it lost, if any are given. uid is "" if it is not known. An eviction for failed nodes is for
// no other Workload, and always wanted. Replacements of places are not checked here: their Workload runs, whatever the
// state of its queue.
func (wr *Writer) stillWanted(ctx context.Context, key engine.Key, uid string, lost []string) (bool, error) {
	if key == (engine.Key{}) {
		return true, nil
	}
	var w kueue.Workload
	if err := wr.client.Get(ctx, client.ObjectKey(key), &w, client.UnsafeDisableDeepCopy); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	switch {
	case uid != "" && string(w.UID) != uid, workload.IsFinished(&w):
		return false, nil
	case len(lost) > 0:
		return workload.HoldsQuota(&w) && !workload.IsEvicted(&w) && hasPlacesOn(&w, lost), nil
	case workload.HoldsQuota(&w):
		if !isElastic(&w) {
			return false, nil // it was admitted after fewer evictions
		}
		return wr.mayStillGrow(ctx, &w, string(w.Status.Admission.ClusterQueue))
	case !translate.MayBeAdmitted(&w):
		return false, nil
	}
	queue, err := wr.openQueue(ctx, &w)
	return queue != nil, err
}

// hasPlacesOn reports whether the Workload has places on any of the nodes.
func hasPlacesOn(w *kueue.Workload, nodes []string) bool {
	return slices.ContainsFunc(w.Status.Admission.PodSetAssignments, func(a kueue.PodSetAssignment) bool {
		places, _ := translate.PlacesFrom(a.TopologyAssignment)
		return slices.ContainsFunc(places, func(at place.NodeCount) bool { return slices.Contains(nodes, at.Node) })
	})
}

// isElastic reports whether the Workload may grow while it runs.
func isElastic(w *kueue.Workload) bool {
	return slices.ContainsFunc(w.Spec.PodSets,
		func(ps kueue.PodSet) bool { return ps.Template.Annotations[muster.MinReplicasAnnotation] != "" })
}

// sameChecks reports whether both lists have the same checks, in any order.
func sameChecks(is []kueue.AdmissionCheckReference, listed []string) bool {
	return len(is) == len(listed) &&
		!slices.ContainsFunc(is, func(name kueue.AdmissionCheckReference) bool {
			return !slices.Contains(listed, string(name))
		})
}
