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

// TestANewOperatorReassignsNoPlace: its cache may lack the last writes of the previous operator. Pods
// without a rank that are equally old are placed by name, so a later one would get an earlier one's place.
func TestANewOperatorReassignsNoPlace(t *testing.T) {
	w := newWorld(t, admitted(on("a", 1), on("b", 1)), pod("later-by-name").at("a"), pod("by-name"))
	w.behind["later-by-name"] = pod("later-by-name").of("wl").Pod
	if err := w.reconcile(); err != nil {
		t.Fatal(err)
	}
	w.check("places", map[string]string{"later-by-name": "a", "by-name": "b"}, w.where())
	w.check("writes", []string{"place by-name"}, w.writes)
}

// TestAfterAnAnsweredWriteTheCacheIsUsed: the write came after all writes of another operator, and the
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
	w.check("places", map[string]string{"x": "a", "y": "b"}, w.where())
	w.check("reads of the API server", 1, len(w.reads))
}

// TestALiveListSelectsThePodsOfTheJob, since a namespace can have many others. Without a label of the job,
// pods of other Workloads must not use up places.
func TestALiveListSelectsThePodsOfTheJob(t *testing.T) {
	for name, tc := range map[string]struct{ uid, read string }{
		"by the label with its UID": {"uid-of-job", muster.JobUIDLabel + "=uid-of-job"},
		"without such a label":      {"uid-of-another", kueue.PodSetLabel},
	} {
		t.Run(name, func(t *testing.T) {
			wl := admitted(on("a", 1))
			wl.OwnerReferences = []metav1.OwnerReference{{Kind: "VCJob", Name: "job", UID: "uid-of-job", Controller: ptr.To(true)}}
			mine := pod("mine")
			mine.Labels["app"], mine.Labels[muster.JobUIDLabel] = "trainer", tc.uid
			w := newWorld(t, wl, mine)
			if err := w.api.Create(t.Context(), pod("anothers").of("another").at("a").Pod); err != nil {
				t.Fatal(err)
			}
			if err := w.reconcile(); err != nil {
				t.Fatal(err)
			}
			w.check("reads", []string{"list " + tc.read}, w.reads)
			w.check("places", map[string]string{"mine": "a", "anothers": "a"}, w.where())
		})
	}
}

// TestUnconfirmedPlacesAreReadWithOneList: many writes were not answered and the watch has reported none
// of them. The API server, which is in trouble, gets one request, and no place is assigned twice.
func TestUnconfirmedPlacesAreReadWithOneList(t *testing.T) {
	for name, took := range map[string]bool{"the writes took effect": true, "they did not": false} {
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
				t.Fatalf("lost answers are no error: %v", err)
			}
			for name := range w.lost {
				w.behind[name] = pod(name).of("wl").Pod
			}
			w.lost = nil
			w.create(pod("by-name"))
			if err := w.reconcile(); err != nil {
				t.Fatal(err)
			}
			count := map[string]int{}
			for _, node := range w.where() {
				count[node]++
			}
			w.check("pods by node", map[string]int{"a": 20, "b": 1}, count)
			w.check("reads of the API server", 1, len(w.reads))

			clear(w.behind) // the watch has told
			if err := w.reconcile(); err != nil {
				t.Fatal(err)
			}
			w.check("remembered", 0, len(w.placer.unconfirmed.byWorkload))
			w.check("reads of the API server in the end", 1, len(w.reads))
		})
	}
}

// TestMisplacedPodsAreDeletedThoughPodsCannotBeListed: only assignments wait for the list.
func TestMisplacedPodsAreDeletedThoughPodsCannotBeListed(t *testing.T) {
	w := newWorld(t, admitted(on("a", 1), on("c", 1)), pod("lost").at("b"), pod("waits"))
	w.placer.live = interceptor.NewClient(w.api, interceptor.Funcs{List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
		return errLost
	}})
	if err := w.reconcile(); !errors.Is(err, errLost) {
		t.Errorf("the error is %v", err)
	}
	w.check("writes", []string{"delete lost", "mark lost"}, w.writes)
}

// TestDeletedObjectsAreForgotten: neither pods nor Workloads are kept, and their events are not dropped.
func TestDeletedObjectsAreForgotten(t *testing.T) {
	evicted := admitted(on("a", 1))
	evicted.Status.Conditions = append(evicted.Status.Conditions, metav1.Condition{Type: kueue.WorkloadEvicted, Status: metav1.ConditionTrue})
	for name, goes := range map[string]func(*world) (passed bool, err error){
		"a pod": func(w *world) (bool, error) {
			gone := pod("x").of("wl").Pod
			return relevantPods().Delete(event.DeleteEvent{Object: gone}), w.api.Delete(t.Context(), gone)
		},
		"a Workload": func(w *world) (bool, error) {
			gone := admitted(on("a", 1))
			return placesChanged().Delete(event.DeleteEvent{Object: gone}), w.api.Delete(t.Context(), gone)
		},
		"an evicted Workload": func(w *world) (bool, error) {
			var was kueue.Workload
			if err := w.api.Get(t.Context(), client.ObjectKeyFromObject(evicted), &was); err != nil {
				return false, err
			}
			is := was.DeepCopy()
			is.Status = evicted.Status
			return placesChanged().Update(event.UpdateEvent{ObjectOld: &was, ObjectNew: is}), w.api.Status().Update(t.Context(), is)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, admitted(on("a", 1)), pod("x"))
			w.lost = map[string]bool{"x": false}
			if err := w.reconcile(); !errors.Is(err, errLost) {
				t.Fatalf("a lost answer is no error: %v", err)
			}
			w.check("remembered", 1, len(w.placer.unconfirmed.byWorkload))
			passed, err := goes(w)
			if err != nil {
				t.Fatal(err)
			}
			if !passed {
				t.Fatal("the event is dropped")
			}
			if _, err := w.placer.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(evicted)}); err != nil {
				t.Fatal(err)
			}
			w.check("remembered in the end", 0, len(w.placer.unconfirmed.byWorkload))
		})
	}
}

func (w *world) create(b podBuilder) {
	w.t.Helper()
	if err := w.api.Create(w.t.Context(), b.of("wl").Pod); err != nil {
		w.t.Fatal(err)
	}
}

// cached makes a list return the pods as the watch has reported them.
func (w *world) cached(list client.ObjectList) {
	pods, ok := list.(*corev1.PodList)
	if !ok {
		return
	}
	for i := range pods.Items {
		if seen := w.behind[pods.Items[i].Name]; seen != nil {
			pods.Items[i] = *seen.DeepCopy()
		}
	}
}
