package placer

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/podspec"
	"github.com/musterhq/muster/internal/workload"
)

const (
	// concurrentReconciles is the number of Workloads that are reconciled concurrently.
	concurrentReconciles = 8
	// longestRetry bounds the backoff after errors.
	longestRetry = 10 * time.Second
)

// AddTo adds the controller that assigns gated pods to their places. The manager's cache must keep the metadata, node,
// node selector, gates and phase of pods.
func AddTo(mgr ctrl.Manager) error {
	for index, of := range map[string]client.IndexerFunc{workloadIndex: workloadOf, gatedIndex: isGated} {
		if err := mgr.GetFieldIndexer().IndexField(context.Background(), &corev1.Pod{}, index, of); err != nil {
			return fmt.Errorf("indexing Pods by %s: %w", index, err)
		}
	}
	if err := registerMetrics(mgr.GetCache()); err != nil {
		return err
	}
	p := &placer{client: mgr.GetClient(), live: mgr.GetAPIReader(), clock: clock.RealClock{}}
	return ctrl.NewControllerManagedBy(mgr).
		Named("placer").
		For(&kueue.Workload{}, builder.WithPredicates(placesChanged())).
		Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(requestsOf), builder.WithPredicates(relevantPods())).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: concurrentReconciles,
			RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](
				5*time.Millisecond, longestRetry),
		}).
		Complete(p)
}

// workloadOf is the index function for workloadIndex.
func workloadOf(object client.Object) []string {
	if name := object.GetAnnotations()[kueue.WorkloadAnnotation]; name != "" {
		return []string{name}
	}
	return nil
}

// requestsOf returns the request to reconcile the Workload of a pod.
func requestsOf(_ context.Context, object client.Object) []reconcile.Request {
	var out []reconcile.Request
	for _, name := range workloadOf(object) {
		out = append(out, reconcile.Request{NamespacedName: client.ObjectKey{Namespace: object.GetNamespace(), Name: name}})
	}
	return out
}

// placesChanged passes events of Workloads that get places, get other ones or lose them, or whose shrink has ended for
// a pod set.
func placesChanged() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return givesPlaces(e.Object.(*kueue.Workload)) },
		UpdateFunc: func(e event.UpdateEvent) bool {
			was, is := e.ObjectOld.(*kueue.Workload), e.ObjectNew.(*kueue.Workload)
			return givesPlaces(is) != givesPlaces(was) ||
				givesPlaces(is) && (!equality.Semantic.DeepEqual(was.Status.Admission, is.Status.Admission) ||
					len(workload.ShrinksTo(was)) > len(workload.ShrinksTo(is)))
		},
		DeleteFunc: func(e event.DeleteEvent) bool { return givesPlaces(e.Object.(*kueue.Workload)) },
	}
}

// relevantPods passes events of pods that wait for a place, start to use one or stop using it.
func relevantPods() predicate.Predicate {
	matters := func(object client.Object) bool { return len(workloadOf(object)) > 0 }
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return matters(e.Object) },
		UpdateFunc: func(e event.UpdateEvent) bool {
			was, is := e.ObjectOld.(*corev1.Pod), e.ObjectNew.(*corev1.Pod)
			return matters(is) && (was.UID != is.UID || gated(is) || podspec.HasEnded(was) != podspec.HasEnded(is) ||
				was.DeletionTimestamp.IsZero() != is.DeletionTimestamp.IsZero() ||
				was.Spec.NodeName != is.Spec.NodeName && is.Spec.NodeSelector[corev1.LabelHostname] == "")
		},
		DeleteFunc: func(e event.DeleteEvent) bool { return matters(e.Object) },
	}
}
