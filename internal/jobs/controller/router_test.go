package controller

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/api/muster"
)

// TestAllJobsLearnOfANewBound: it is an annotation of the ClusterQueue, and may be that of any job's LocalQueue.
func TestAllJobsLearnOfANewBound(t *testing.T) {
	job := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "job", Namespace: "ns"}}
	r := &router[*corev1.ConfigMap]{
		read: &reader[*corev1.ConfigMap]{client: fake.NewClientBuilder().WithObjects(job).Build()}}
	bounded := func(text string) *kueue.ClusterQueue {
		return &kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: "cq",
			Annotations: map[string]string{muster.MaxDurationAnnotation: text}}}
	}
	for bound, want := range map[string]int{"1h": 1, "1d": 0} {
		queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
		change := event.UpdateEvent{ObjectOld: bounded("1d"), ObjectNew: bounded(bound)}
		change.ObjectNew.GetAnnotations()["other"] = "changed"
		r.watchQueueing(func(kind client.Object, of handler.EventHandler, only ...predicate.Predicate) {
			if _, is := kind.(*kueue.ClusterQueue); is && predicate.And(only...).Update(change) {
				of.Update(t.Context(), change, queue)
			}
		})
		if got := queue.Len(); got != want {
			t.Errorf("%d jobs are reconciled for a change of the bound from 1d to %s, want %d", got, bound, want)
		}
		queue.ShutDown()
	}
}
