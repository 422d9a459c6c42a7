package jobs

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// podsBatchDelay is how long changes of a job's pods are batched: many pods change at once, and each reconcile reads
// all of them.
const podsBatchDelay = 50 * time.Millisecond

// podsOf returns the pods of the job that the API needs. They are shared with the cache.
func (r *reader[T]) podsOf(ctx context.Context, job T) ([]*corev1.Pod, error) {
	if r.api.Pods == nil {
		return nil, nil
	}
	labels := r.api.Pods.Labels(job)
	if labels == nil {
		return nil, nil
	}
	var list corev1.PodList
	if err := r.client.List(ctx, &list, client.InNamespace(job.GetNamespace()), client.UnsafeDisableDeepCopy, client.MatchingLabels(labels)); err != nil {
		return nil, fmt.Errorf("listing the pods of %s: %w", client.ObjectKeyFromObject(job), err)
	}
	out := make([]*corev1.Pod, len(list.Items))
	for i := range list.Items {
		out[i] = &list.Items[i]
	}
	return out, nil
}

// requestsOfPods enqueues the job of a pod.
func requestsOfPods[T client.Object](p *PodsOf[T]) handler.EventHandler {
	return batchRequests(handler.EnqueueRequestsFromMapFunc(func(_ context.Context, object client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: object.GetNamespace(), Name: p.JobOf(object.(*corev1.Pod))}}}
	}), podsBatchDelay)
}

// podsThatMatter filters out events of pods that cannot matter to a job.
func podsThatMatter[T client.Object](p *PodsOf[T]) predicate.Predicate {
	of := func(object client.Object) bool {
		pod, ok := object.(*corev1.Pod)
		return ok && p.JobOf(pod) != ""
	}
	return predicate.Funcs{
		CreateFunc:  func(e event.CreateEvent) bool { return of(e.Object) },
		DeleteFunc:  func(e event.DeleteEvent) bool { return of(e.Object) },
		GenericFunc: func(event.GenericEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			return of(e.ObjectNew) && p.Matters(e.ObjectOld.(*corev1.Pod), e.ObjectNew.(*corev1.Pod))
		},
	}
}
