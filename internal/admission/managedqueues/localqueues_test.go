package managedqueues

import (
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/api/muster"
)

// TestMadeLocalQueuesGoWithTheirClusterQueue, once no Workload holds quota through them. Those that users made stay.
func TestMadeLocalQueuesGoWithTheirClusterQueue(t *testing.T) {
	local := func(labels map[string]string) *kueue.LocalQueue {
		return &kueue.LocalQueue{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "team", Labels: labels},
			Spec: kueue.LocalQueueSpec{ClusterQueue: "team"}}
	}
	made := map[string]string{muster.MadeForLabel: "team"}
	inQueue := func(queue string, conditions ...string) *kueue.Workload {
		w := &kueue.Workload{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "w"},
			Spec: kueue.WorkloadSpec{QueueName: kueue.LocalQueueName(queue)}}
		for _, c := range conditions {
			w.Status.Conditions = append(w.Status.Conditions, metav1.Condition{Type: c, Status: metav1.ConditionTrue})
			w.Status.Admission = &kueue.Admission{ClusterQueue: "team"}
		}
		return w
	}
	cluster := &kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: "team"}}
	for name, test := range map[string]struct {
		there []client.Object
		goes  bool
	}{
		"without its ClusterQueue": {[]client.Object{local(made)}, true},
		"with it":                  {[]client.Object{local(made), cluster}, false},
		"one that a user made":     {[]client.Object{local(nil)}, false},
		"while a Workload holds quota": {[]client.Object{local(made),
			inQueue("team", kueue.WorkloadQuotaReserved)}, false},
		"a Workload waits in it": {[]client.Object{local(made), inQueue("team")}, true},
		"a Workload has ended": {[]client.Object{local(made),
			inQueue("team", kueue.WorkloadQuotaReserved, kueue.WorkloadFinished)}, true},
		"a Workload of another queue holds some": {[]client.Object{local(made),
			inQueue("other", kueue.WorkloadQuotaReserved)}, true},
	} {
		t.Run(name, func(t *testing.T) {
			api := fake.NewClientBuilder().WithScheme(queueScheme(t)).WithObjects(test.there...).Build()
			keeper := &madeLocalQueues{client: api}
			key := client.ObjectKey{Namespace: "ns", Name: "team"}
			if _, err := keeper.Reconcile(t.Context(), ctrl.Request{NamespacedName: key}); err != nil {
				t.Fatal(err)
			}
			if err := api.Get(t.Context(), key, &kueue.LocalQueue{}); apierrors.IsNotFound(err) != test.goes {
				t.Errorf("the LocalQueue is there: %v, want that it goes: %v", err == nil, test.goes)
			}
		})
	}
	holds, waits := inQueue("team", kueue.WorkloadQuotaReserved), inQueue("team")
	if !gaveQuotaBack.Update(event.UpdateEvent{ObjectOld: holds, ObjectNew: waits}) ||
		gaveQuotaBack.Update(event.UpdateEvent{ObjectOld: waits, ObjectNew: holds}) {
		t.Error("a LocalQueue is to be looked at when a Workload gives its quota back, and not when it gets some")
	}
	if got := (&madeLocalQueues{client: fake.NewClientBuilder().WithScheme(queueScheme(t)).WithObjects(local(made)).
		Build()}).of(t.Context(), cluster); len(got) != 1 || got[0].Name != "team" {
		t.Errorf("the end of a ClusterQueue leads to %v, want its LocalQueue", got)
	}
}
