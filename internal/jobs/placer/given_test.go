package placer

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestAPlaceThatWasGivenIsNobodyElses: also while the watch has not told of it, as is so where pods are made faster than they are
// placed. Pods without a rank of one second are placed by their names, so that the later one would get the place of the earlier.
func TestAPlaceThatWasGivenIsNobodyElses(t *testing.T) {
	w := newWorld(t, admitted(on("a", 1), on("b", 1)), pod("later-by-name"))
	if err := w.reconcile(); err != nil {
		t.Fatal(err)
	}
	w.behind["later-by-name"] = pod("later-by-name").of("wl").Pod
	w.create(pod("by-name"))
	if err := w.reconcile(); err != nil {
		t.Fatal(err)
	}
	w.check("places", map[string]string{"later-by-name": "a", "by-name": "b"}, w.where())
	w.check("writes", []string{"place by-name", "place later-by-name"}, w.writes)

	// Once the watch has told, what is remembered says nothing any more: here of a pod that was made anew.
	delete(w.behind, "later-by-name")
	if err := w.reconcile(); err != nil {
		t.Fatal(err)
	}
	if n := w.placer.given.len(); n != 0 {
		t.Errorf("%d places are remembered that the watch has told of", n)
	}
}

// TestAPlaceThatMayHaveBeenGivenIsAskedFor: the answer to a write was lost, and the watch has not told of it.
func TestAPlaceThatMayHaveBeenGivenIsAskedFor(t *testing.T) {
	for name, took := range map[string]bool{"the write took effect": true, "it did not": false} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, admitted(on("a", 1), on("b", 1)), pod("later-by-name"))
			w.lost = map[string]bool{"later-by-name": took}
			if err := w.reconcile(); err == nil {
				t.Fatal("a lost answer is no error")
			}
			w.lost = nil
			w.behind["later-by-name"] = pod("later-by-name").of("wl").Pod
			w.create(pod("by-name"))
			if err := w.reconcile(); err != nil {
				t.Fatal(err)
			}
			count := map[string]int{}
			for _, node := range w.where() {
				count[node]++
			}
			w.check("pods by node", map[string]int{"a": 1, "b": 1}, count)
		})
	}
}

// TestNothingIsRememberedOfWhoIsGone: neither of pods nor of Workloads.
func TestNothingIsRememberedOfWhoIsGone(t *testing.T) {
	for name, goes := range map[string]func(*world) client.Object{
		"a pod":      func(*world) client.Object { return pod("x").of("wl").Pod },
		"a Workload": func(*world) client.Object { return admitted(on("a", 1)) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, admitted(on("a", 1)), pod("x"))
			if err := w.reconcile(); err != nil {
				t.Fatal(err)
			}
			if n := w.placer.given.len(); n != 1 {
				t.Fatalf("%d places are remembered of one that was given", n)
			}
			if err := w.api.Delete(t.Context(), goes(w)); err != nil {
				t.Fatal(err)
			}
			if err := w.reconcile(); err != nil {
				t.Fatal(err)
			}
			if n := w.placer.given.len(); n != 0 {
				t.Errorf("%d places are remembered", n)
			}
		})
	}
}

// len is how many places are remembered.
func (g *given) len() int {
	n := 0
	for _, gifts := range g.byWorkload {
		n += len(gifts)
	}
	return n
}

func (w *world) create(b podBuilder) {
	w.t.Helper()
	if err := w.api.Create(w.t.Context(), b.of("wl").Pod); err != nil {
		w.t.Fatal(err)
	}
}

// read gives pods as the watch has told of them.
func (w *world) read(list client.ObjectList) {
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
