package admission

import (
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
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

// kept adds the finalizer, and deleted makes the object terminating with it.
func kept[O client.Object](o O) O {
	o.SetFinalizers([]string{kueue.ResourceInUseFinalizer})
	return o
}

func deletedButKept[O client.Object](o O) O {
	o.SetDeletionTimestamp(ptr.To(metav1.NewTime(now)))
	return kept(o)
}

func TestObjectsInUseAreKept(t *testing.T) {
	queue := func() *kueue.ClusterQueue { return newClusterQueue("cq", "8") }
	flavor := func() *kueue.ResourceFlavor { return newFlavor("f") }
	for name, test := range map[string]struct {
		objects []client.Object
		keeper  func(client.Client, client.Reader) *inUseKeeper
		of      string
		writes  []string
	}{
		"an unused ClusterQueue is not":                    {[]client.Object{queue()}, clusterQueueKeeper, "cq", nil},
		"one that was only used in the past is not":        {[]client.Object{queue(), finished(admittedWorkload("a"))}, clusterQueueKeeper, "cq", nil},
		"a ClusterQueue that is used is":                   {[]client.Object{queue(), reservedWorkload("a")}, clusterQueueKeeper, "cq", []string{"change ClusterQueue cq"}},
		"one that is kept already is left alone":           {[]client.Object{kept(queue()), admittedWorkload("a")}, clusterQueueKeeper, "cq", nil},
		"one that may be used again is left alone":         {[]client.Object{kept(queue())}, clusterQueueKeeper, "cq", nil},
		"one that is deleted stays while it is used":       {[]client.Object{deletedButKept(queue()), admittedWorkload("a")}, clusterQueueKeeper, "cq", nil},
		"a deleted one is released once it is unused":      {[]client.Object{deletedButKept(queue()), newWorkload("a", 1, nil)}, clusterQueueKeeper, "cq", []string{"change ClusterQueue cq"}},
		"a ResourceFlavor that no queue lists is not":      {[]client.Object{flavor()}, flavorKeeper, "f", nil},
		"a ResourceFlavor that a queue lists is":           {[]client.Object{flavor(), queue()}, flavorKeeper, "f", []string{"change ResourceFlavor f"}},
		"one that is deleted stays while a queue lists it": {[]client.Object{deletedButKept(flavor()), queue()}, flavorKeeper, "f", nil},
		"a deleted one is released once no queue lists it": {[]client.Object{deletedButKept(flavor())}, flavorKeeper, "f", []string{"change ResourceFlavor f"}},
		"a missing one needs nothing":                      {nil, flavorKeeper, "f", nil},
		"a deleted one with another finalizer": {[]client.Object{func() client.Object {
			f := deletedButKept(flavor())
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
			same(t, "writes", w.written(), test.writes)
		})
	}
}

func TestAConflictOnAFinalizerIsRetriedSoon(t *testing.T) {
	w := newWorld(t, newClusterQueue("cq", "8"), reservedWorkload("a"))
	w.before = func(string) error {
		return apierrors.NewConflict(schema.GroupResource{Resource: "clusterqueues"}, "cq", nil)
	}
	result, err := clusterQueueKeeper(w, w).Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Name: "cq"}})
	if err != nil || result.RequeueAfter != conflictPause {
		t.Errorf("it returns %+v, %v", result, err)
	}
}

func TestWhichUpdatesEnqueueAClusterQueueInUse(t *testing.T) {
	for name, test := range map[string]struct {
		queue         *kueue.ClusterQueue
		before, after *kueue.Workload
		want          []string
	}{
		"it is first used":                          {newClusterQueue("cq", "8"), newWorkload("a", 1, nil), reservedWorkload("a"), []string{"cq after 0s"}},
		"it is used, and kept already":              {kept(newClusterQueue("cq", "8")), newWorkload("a", 1, nil), reservedWorkload("a"), nil},
		"one user of many ends":                     {kept(newClusterQueue("cq", "8")), admittedWorkload("a"), finished(admittedWorkload("a")), nil},
		"a user ends, and the queue is terminating": {deletedButKept(newClusterQueue("cq", "8")), admittedWorkload("a"), finished(admittedWorkload("a")), []string{"cq after 0s"}},
		"a Workload waits":                          {newClusterQueue("cq", "8"), newWorkload("a", 1, nil), newWorkload("a", 1, nil), nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, test.queue)
			var q queued
			clusterQueueKeeper(w, w).enqueueUsed(reservedQueue).Update(t.Context(), event.UpdateEvent{ObjectOld: test.before, ObjectNew: test.after}, &q)
			same(t, "requests", q.requests, test.want)
		})
	}
}
