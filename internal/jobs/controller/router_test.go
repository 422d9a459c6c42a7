package controller

import (
	"reflect"
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

// TestJobsThatPauseLearnOfANewLimit of a ClusterQueue, which may be that of any job's LocalQueue, and of a LocalQueue
// of their namespace. Jobs of other APIs have nothing to do then.
func TestJobsThatPauseLearnOfANewLimit(t *testing.T) {
	job := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "job", Namespace: "ns"}}
	bounded := func(text string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Name: "q", Namespace: "ns",
			Annotations: map[string]string{muster.MaxDurationAnnotation: text}}
	}
	for _, q := range []func(text string) client.Object{
		func(text string) client.Object { return &kueue.ClusterQueue{ObjectMeta: bounded(text)} },
		func(text string) client.Object { return &kueue.LocalQueue{ObjectMeta: bounded(text)} },
	} {
		for _, test := range []struct {
			bound  string
			pauses bool
			want   int
		}{{"1h", true, 1}, {"1d", true, 0}, {"1h", false, 0}} {
			r := &router[*corev1.ConfigMap]{
				read: &reader[*corev1.ConfigMap]{client: fake.NewClientBuilder().WithObjects(job).Build()}}
			r.api.Abilities.Pauses = test.pauses
			queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
			change := event.UpdateEvent{ObjectOld: q("1d"), ObjectNew: q(test.bound)}
			change.ObjectNew.GetAnnotations()["other"] = "changed"
			r.watchQueueing(func(kind client.Object, of handler.EventHandler, only ...predicate.Predicate) {
				if reflect.TypeOf(kind) == reflect.TypeOf(change.ObjectNew) && predicate.And(only...).Update(change) {
					of.Update(t.Context(), change, queue)
				}
			})
			if got := queue.Len(); got != test.want {
				t.Errorf("%d jobs are reconciled for a change of the limit of a %T from 1d to %s, want %d, pauses: %t", got,
					change.ObjectNew, test.bound, test.want, test.pauses)
			}
			queue.ShutDown()
		}
	}
}
