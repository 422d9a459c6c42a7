package admission

import (
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/workload"
)

func finished(w *kueue.Workload) *kueue.Workload {
	workload.SetCondition(w, kueue.WorkloadFinished, metav1.ConditionTrue, kueue.WorkloadFinishedReasonSucceeded, "", now)
	return w
}

// withFinalizer adds the finalizer, and terminating also deletes the object.
func withFinalizer[O client.Object](o O) O {
	o.SetFinalizers([]string{kueue.ResourceInUseFinalizer})
	return o
}

func terminating[O client.Object](o O) O {
	o.SetDeletionTimestamp(ptr.To(metav1.NewTime(now)))
	return withFinalizer(o)
}

func TestObjectsInUseAreKept(t *testing.T) {
	queue := func() *kueue.ClusterQueue { return newClusterQueue("cq", "8") }
	flavor := func() *kueue.ResourceFlavor { return newFlavor("f") }
	flavorKeeper := func(c client.Client, cache client.Reader) *inUseKeeper {
		return flavorKeeper(c, cache, events.NewFakeRecorder(2))
	}
	for name, test := range map[string]struct {
		objects []client.Object
		keeper  func(client.Client, client.Reader) *inUseKeeper
		of      string
		writes  []string
	}{
		"an unused ClusterQueue":                    {[]client.Object{queue()}, clusterQueueKeeper, "cq", nil},
		"a ClusterQueue that was used before":       {[]client.Object{queue(), finished(admittedWorkload("a"))}, clusterQueueKeeper, "cq", nil},
		"a ClusterQueue in use":                     {[]client.Object{queue(), reservedWorkload("a")}, clusterQueueKeeper, "cq", []string{"change ClusterQueue cq"}},
		"a ClusterQueue in use with the finalizer":  {[]client.Object{withFinalizer(queue()), admittedWorkload("a")}, clusterQueueKeeper, "cq", nil},
		"an unused ClusterQueue with the finalizer": {[]client.Object{withFinalizer(queue())}, clusterQueueKeeper, "cq", nil},
		"a terminating ClusterQueue in use":         {[]client.Object{terminating(queue()), admittedWorkload("a")}, clusterQueueKeeper, "cq", nil},
		"an unused terminating ClusterQueue":        {[]client.Object{terminating(queue()), newWorkload("a", 1, nil)}, clusterQueueKeeper, "cq", []string{"change ClusterQueue cq"}},
		"an unused ResourceFlavor":                  {[]client.Object{flavor()}, flavorKeeper, "f", nil},
		"a ResourceFlavor in use":                   {[]client.Object{flavor(), queue()}, flavorKeeper, "f", []string{"change ResourceFlavor f"}},
		"a terminating ResourceFlavor in use":       {[]client.Object{terminating(flavor()), queue()}, flavorKeeper, "f", nil},
		"an unused terminating ResourceFlavor":      {[]client.Object{terminating(flavor())}, flavorKeeper, "f", []string{"change ResourceFlavor f"}},
		"a missing ResourceFlavor":                  {nil, flavorKeeper, "f", nil},
		"a terminating object with another finalizer": {[]client.Object{func() client.Object {
			f := terminating(flavor())
			f.Finalizers = []string{"example.com/mine"}
			return f
		}()}, flavorKeeper, "f", nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, test.objects...)
			for range 2 { // the second time there is nothing to change
				if _, err := test.keeper(w, w).Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Name: test.of}}); err != nil {
					t.Fatal(err)
				}
			}
			expectEqual(t, "writes", w.written(), test.writes)
		})
	}
}

// TestADeletedFlavorSaysWhoUsesIt: kubectl delete waits, and a ResourceFlavor has no status that could say for what.
func TestADeletedFlavorSaysWhoUsesIt(t *testing.T) {
	recorder := events.NewFakeRecorder(2)
	for _, flavor := range []*kueue.ResourceFlavor{withFinalizer(newFlavor("f")), terminating(newFlavor("f"))} {
		w := newWorld(t, flavor, newClusterQueue("b", "8"), newClusterQueue("a", "8"))
		if _, err := flavorKeeper(w, w, recorder).Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Name: "f"}}); err != nil {
			t.Fatal(err)
		}
	}
	close(recorder.Events)
	var got []string
	for event := range recorder.Events {
		got = append(got, event)
	}
	expectEqual(t, "events", got, []string{"Warning InUse it is deleted once no ClusterQueue lists it; these do: a, b"})
}

func TestAConflictOnAFinalizerIsRetriedSoon(t *testing.T) {
	w := newWorld(t, newClusterQueue("cq", "8"), reservedWorkload("a"))
	w.before = func(string) error {
		return apierrors.NewConflict(schema.GroupResource{Resource: "clusterqueues"}, "cq", nil)
	}
	result, err := clusterQueueKeeper(w, w).Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Name: "cq"}})
	if err != nil || result.RequeueAfter != conflictPause {
		t.Errorf("Reconcile returned %+v, %v, want a requeue after the pause", result, err)
	}
}

func TestWhichUpdatesEnqueueAClusterQueueInUse(t *testing.T) {
	for name, test := range map[string]struct {
		queue         *kueue.ClusterQueue
		before, after *kueue.Workload
		want          []string
	}{
		"first use":                              {newClusterQueue("cq", "8"), newWorkload("a", 1, nil), reservedWorkload("a"), []string{"cq after 0s"}},
		"use of a queue with the finalizer":      {withFinalizer(newClusterQueue("cq", "8")), newWorkload("a", 1, nil), reservedWorkload("a"), nil},
		"one of many Workloads ends":             {withFinalizer(newClusterQueue("cq", "8")), admittedWorkload("a"), finished(admittedWorkload("a")), nil},
		"a Workload ends in a terminating queue": {terminating(newClusterQueue("cq", "8")), admittedWorkload("a"), finished(admittedWorkload("a")), []string{"cq after 0s"}},
		"a waiting Workload":                     {newClusterQueue("cq", "8"), newWorkload("a", 1, nil), newWorkload("a", 1, nil), nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, test.queue)
			var q queued
			clusterQueueKeeper(w, w).enqueueUsed(reservedQueue).Update(t.Context(), event.UpdateEvent{ObjectOld: test.before, ObjectNew: test.after}, &q)
			expectEqual(t, "requests", q.requests, test.want)
		})
	}
}
