package placer

import (
	"context"
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/api/muster"
)

// TestANewOperatorReassignsNoPlace: its cache may not have the last writes of the previous operator. Equally old pods
// without a rank are placed by name, so that a pod could get the place of another.
func TestANewOperatorReassignsNoPlace(t *testing.T) {
	w := newWorld(t, admitted(on("a", 1), on("b", 1)), pod("later-by-name").at("a"), pod("by-name"))
	w.stale["later-by-name"] = pod("later-by-name").of("wl").Pod
	if err := w.reconcile(); err != nil {
		t.Fatal(err)
	}
	w.check("places", map[string]string{"later-by-name": "a", "by-name": "b"}, w.nodes())
	w.check("writes", []string{"place by-name"}, w.writes)
}

// TestAfterAnAnsweredWriteTheCacheIsUsed: an answered write came after all writes of the previous operator, and the
// client waits until the cache has it.
func TestAfterAnAnsweredWriteTheCacheIsUsed(t *testing.T) {
	w := newWorld(t, admitted(on("a", 1), on("b", 1)), pod("x"))
	if err := w.reconcile(); err != nil {
		t.Fatal(err)
	}
	w.create(pod("y"))
	if err := w.reconcile(); err != nil {
		t.Fatal(err)
	}
	w.check("places", map[string]string{"x": "a", "y": "b"}, w.nodes())
	w.check("reads of the API server", 1, len(w.reads))
}

// TestALiveListSelectsThePodsOfTheJob, since a namespace can have many others. If the job's pods have no label with its
// UID, the pods of other Workloads are listed too, and must not use up places.
func TestALiveListSelectsThePodsOfTheJob(t *testing.T) {
	for name, tc := range map[string]struct{ uid, read string }{
		"label with the job's UID": {"uid-of-job", muster.JobUIDLabel + "=uid-of-job"},
		"no such label":            {"uid-of-another", kueue.PodSetLabel},
	} {
		t.Run(name, func(t *testing.T) {
			wl := admitted(on("a", 1))
			wl.OwnerReferences = []metav1.OwnerReference{{Kind: "VCJob", Name: "job", UID: "uid-of-job",
				Controller: ptr.To(true)}}
			own := pod("own")
			own.Labels["app"], own.Labels[muster.JobUIDLabel] = "trainer", tc.uid
			w := newWorld(t, wl, own)
			if err := w.api.Create(t.Context(), pod("foreign").of("another").at("a").Pod); err != nil {
				t.Fatal(err)
			}
			if err := w.reconcile(); err != nil {
				t.Fatal(err)
			}
			w.check("reads", []string{"list " + tc.read}, w.reads)
			w.check("places", map[string]string{"own": "a", "foreign": "a"}, w.nodes())
		})
	}
}

// TestUnconfirmedPlacesAreReadWithOneList: many writes were not answered, and the watch has reported none of them. The
// API server, which is in trouble, gets one request, and no place is assigned twice.
func TestUnconfirmedPlacesAreReadWithOneList(t *testing.T) {
	for name, took := range map[string]bool{"writes took effect": true, "writes had no effect": false} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, admitted(on("a", 20), on("b", 1)))
			w.placer.cacheIsCurrent.Store(true)
			w.lost = map[string]bool{}
			for i := range 20 {
				p := pod(fmt.Sprint("later-by-name-", i))
				w.create(p)
				w.lost[p.Name] = took
			}
			if err := w.reconcile(); !errors.Is(err, errLost) {
				t.Fatalf("error %v, want that of lost responses", err)
			}
			for name := range w.lost {
				w.stale[name] = pod(name).of("wl").Pod
			}
			w.lost = nil
			w.create(pod("by-name"))
			if err := w.reconcile(); err != nil {
				t.Fatal(err)
			}
			count := map[string]int{}
			for _, node := range w.nodes() {
				count[node]++
			}
			w.check("pods by node", map[string]int{"a": 20, "b": 1}, count)
			w.check("reads of the API server", 1, len(w.reads))

			clear(w.stale) // the watch has reported the writes
			if err := w.reconcile(); err != nil {
				t.Fatal(err)
			}
			w.check("Workloads with unconfirmed places", 0, len(w.placer.unconfirmed.byWorkload))
			w.check("reads of the API server in the end", 1, len(w.reads))
		})
	}
}

// TestMisplacedPodsAreDeletedThoughPodsCannotBeListed: only assignments need the list from the API server.
func TestMisplacedPodsAreDeletedThoughPodsCannotBeListed(t *testing.T) {
	w := newWorld(t, admitted(on("a", 1), on("c", 1)), pod("misplaced").at("b"), pod("gated"))
	w.placer.live = interceptor.NewClient(w.api,
		interceptor.Funcs{List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
			return errLost
		}})
	if err := w.reconcile(); !errors.Is(err, errLost) {
		t.Errorf("error %v, want that of the list", err)
	}
	w.check("writes", []string{"delete misplaced", "mark misplaced"}, w.writes)
}

// TestDeletedObjectsAreForgotten: the events of deleted pods and of Workloads without places trigger a reconcile, which
// forgets their unconfirmed places.
func TestDeletedObjectsAreForgotten(t *testing.T) {
	evicted := admitted(on("a", 1))
	evicted.Status.Conditions = append(evicted.Status.Conditions,
		metav1.Condition{Type: kueue.WorkloadEvicted, Status: metav1.ConditionTrue})
	for name, remove := range map[string]func(*world) (passed bool, err error){
		"pod deleted": func(w *world) (bool, error) {
			deleted := pod("x").of("wl").Pod
			return relevantPods().Delete(event.DeleteEvent{Object: deleted}), w.api.Delete(t.Context(), deleted)
		},
		"Workload deleted": func(w *world) (bool, error) {
			deleted := admitted(on("a", 1))
			return placesChanged().Delete(event.DeleteEvent{Object: deleted}), w.api.Delete(t.Context(), deleted)
		},
		"Workload evicted": func(w *world) (bool, error) {
			var before kueue.Workload
			if err := w.api.Get(t.Context(), client.ObjectKeyFromObject(evicted), &before); err != nil {
				return false, err
			}
			after := before.DeepCopy()
			after.Status = evicted.Status
			return placesChanged().Update(event.UpdateEvent{ObjectOld: &before, ObjectNew: after}),
				w.api.Status().Update(t.Context(), after)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, admitted(on("a", 1)), pod("x"))
			w.lost = map[string]bool{"x": false}
			if err := w.reconcile(); !errors.Is(err, errLost) {
				t.Fatalf("error %v, want that of a lost response", err)
			}
			w.check("Workloads with unconfirmed places", 1, len(w.placer.unconfirmed.byWorkload))
			passed, err := remove(w)
			if err != nil {
				t.Fatal(err)
			}
			if !passed {
				t.Fatal("the event does not trigger a reconcile")
			}
			if _, err := w.placer.Reconcile(t.Context(),
				ctrl.Request{NamespacedName: client.ObjectKeyFromObject(evicted)}); err != nil {
				t.Fatal(err)
			}
			w.check("Workloads with unconfirmed places in the end", 0, len(w.placer.unconfirmed.byWorkload))
		})
	}
}

// create creates the pod as one of the Workload.
func (w *world) create(b podBuilder) {
	w.t.Helper()
	if err := w.api.Create(w.t.Context(), b.of("wl").Pod); err != nil {
		w.t.Fatal(err)
	}
}

// cached replaces the stale pods of a list by what the cache has of them.
func (w *world) cached(list client.ObjectList) {
	pods, ok := list.(*corev1.PodList)
	if !ok {
		return
	}
	for i := range pods.Items {
		if seen := w.stale[pods.Items[i].Name]; seen != nil {
			pods.Items[i] = *seen.DeepCopy()
		}
	}
}
