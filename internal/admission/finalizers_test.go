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
	"github.com/musterhq/muster/internal/admission/admissiontest"
	"github.com/musterhq/muster/internal/admission/indexes"
	"github.com/musterhq/muster/internal/workload"
)

func finished(w *kueue.Workload) *kueue.Workload {
	workload.SetCondition(w, kueue.WorkloadFinished, metav1.ConditionTrue, kueue.WorkloadFinishedReasonSucceeded, "",
		admissiontest.Now)
	return w
}

// withFinalizer adds the finalizer, and terminating also deletes the object.
func withFinalizer[O client.Object](o O) O {
	o.SetFinalizers([]string{kueue.ResourceInUseFinalizer})
	return o
}

func terminating[O client.Object](o O) O {
	o.SetDeletionTimestamp(ptr.To(metav1.NewTime(admissiontest.Now)))
	return withFinalizer(o)
}

func TestObjectsInUseAreKept(t *testing.T) {
	queue := func() *kueue.ClusterQueue { return admissiontest.NewClusterQueue("cq", "8") }
	flavor := func() *kueue.ResourceFlavor { return admissiontest.NewFlavor("f") }
	flavorKeeper := func(c client.Client, cache client.Reader) *inUseKeeper {
		return flavorKeeper(c, cache, events.NewFakeRecorder(2))
	}
	for name, test := range map[string]struct {
		objects []client.Object
		keeper  func(client.Client, client.Reader) *inUseKeeper
		of      string
		writes  []string
	}{
		"an unused ClusterQueue": {[]client.Object{queue()}, clusterQueueKeeper, "cq", nil},
		"a ClusterQueue that was used before": {[]client.Object{queue(), finished(admissiontest.AdmittedWorkload("a"))},
			clusterQueueKeeper, "cq", nil},
		"a ClusterQueue in use": {[]client.Object{queue(), admissiontest.ReservedWorkload("a")},
			clusterQueueKeeper, "cq", []string{"change ClusterQueue cq"}},
		"a ClusterQueue in use with the finalizer": {[]client.Object{withFinalizer(queue()),
			admissiontest.AdmittedWorkload("a")}, clusterQueueKeeper, "cq", nil},
		"an unused ClusterQueue with the finalizer": {[]client.Object{withFinalizer(queue())}, clusterQueueKeeper, "cq", nil},
		"a terminating ClusterQueue in use": {[]client.Object{terminating(queue()),
			admissiontest.AdmittedWorkload("a")}, clusterQueueKeeper, "cq", nil},
		"an unused terminating ClusterQueue": {[]client.Object{terminating(queue()),
			admissiontest.NewWorkload("a", 1, nil)}, clusterQueueKeeper, "cq", []string{"change ClusterQueue cq"}},
		"an unused ResourceFlavor": {[]client.Object{flavor()}, flavorKeeper, "f", nil},
		"a ResourceFlavor in use": {[]client.Object{flavor(), queue()}, flavorKeeper, "f",
			[]string{"change ResourceFlavor f"}},
		"a terminating ResourceFlavor in use": {[]client.Object{terminating(flavor()), queue()}, flavorKeeper, "f", nil},
		"an unused terminating ResourceFlavor": {[]client.Object{terminating(flavor())}, flavorKeeper, "f",
			[]string{"change ResourceFlavor f"}},
		"a missing ResourceFlavor": {nil, flavorKeeper, "f", nil},
		"a terminating object with another finalizer": {[]client.Object{func() client.Object {
			f := terminating(flavor())
			f.Finalizers = []string{"example.com/mine"}
			return f
		}()}, flavorKeeper, "f", nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := admissiontest.NewWorld(t, test.objects...)
			for range 2 { // the second time there is nothing to change
				if _, err := test.keeper(w, w).Reconcile(t.Context(),
					ctrl.Request{NamespacedName: client.ObjectKey{Name: test.of}}); err != nil {
					t.Fatal(err)
				}
			}
			admissiontest.Expect(t, "writes", test.writes, w.Written())
		})
	}
}

// TestADeletedFlavorSaysWhoUsesIt: kubectl delete waits, and a ResourceFlavor has no status that could say for what.
func TestADeletedFlavorSaysWhoUsesIt(t *testing.T) {
	recorder := events.NewFakeRecorder(2)
	for _, flavor := range []*kueue.ResourceFlavor{withFinalizer(admissiontest.NewFlavor("f")),
		terminating(admissiontest.NewFlavor("f"))} {
		w := admissiontest.NewWorld(t, flavor, admissiontest.NewClusterQueue("b", "8"),
			admissiontest.NewClusterQueue("a", "8"))
		if _, err := flavorKeeper(w, w, recorder).Reconcile(t.Context(),
			ctrl.Request{NamespacedName: client.ObjectKey{Name: "f"}}); err != nil {
			t.Fatal(err)
		}
	}
	close(recorder.Events)
	var got []string
	for event := range recorder.Events {
		got = append(got, event)
	}
	admissiontest.Expect(t, "events",
		[]string{"Warning InUse it is deleted once no ClusterQueue lists it; these do: a, b"}, got)
}

func TestAConflictOnAFinalizerIsRetriedSoon(t *testing.T) {
	w := admissiontest.NewWorld(t, admissiontest.NewClusterQueue("cq", "8"), admissiontest.ReservedWorkload("a"))
	w.Before = func(string) error {
		return apierrors.NewConflict(schema.GroupResource{Resource: "clusterqueues"}, "cq", nil)
	}
	result, err := clusterQueueKeeper(w, w).Reconcile(t.Context(),
		ctrl.Request{NamespacedName: client.ObjectKey{Name: "cq"}})
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
		"first use": {admissiontest.NewClusterQueue("cq", "8"),
			admissiontest.NewWorkload("a", 1, nil), admissiontest.ReservedWorkload("a"), []string{"cq after 0s"}},
		"use of a queue with the finalizer": {withFinalizer(admissiontest.NewClusterQueue("cq", "8")),
			admissiontest.NewWorkload("a", 1, nil), admissiontest.ReservedWorkload("a"), nil},
		"one of many Workloads ends": {withFinalizer(admissiontest.NewClusterQueue("cq", "8")),
			admissiontest.AdmittedWorkload("a"), finished(admissiontest.AdmittedWorkload("a")), nil},
		"a Workload ends in a terminating queue": {terminating(admissiontest.NewClusterQueue("cq", "8")),
			admissiontest.AdmittedWorkload("a"), finished(admissiontest.AdmittedWorkload("a")), []string{"cq after 0s"}},
		"a waiting Workload": {admissiontest.NewClusterQueue("cq", "8"), admissiontest.NewWorkload("a", 1, nil),
			admissiontest.NewWorkload("a", 1, nil), nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := admissiontest.NewWorld(t, test.queue)
			var q queued
			clusterQueueKeeper(w, w).enqueueUsed(indexes.ReservedQueue).Update(t.Context(),
				event.UpdateEvent{ObjectOld: test.before, ObjectNew: test.after}, &q)
			admissiontest.Expect(t, "requests", test.want, q.requests)
		})
	}
}
