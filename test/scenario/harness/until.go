package harness

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
)

// Patience bounds every wait, on a machine that is busy with other tests.
const Patience = 2 * time.Minute

// Until waits, by watching the list, until the condition holds for its items in the world's namespace, which is the last
// that was read. What says what is awaited: the test fails with "waited 2m0s until" it, and the state of the world.
func Until[L client.ObjectList](w *World, list L, what string, holds func(L) bool) {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.Context(), Patience)
	defer cancel()
	for {
		if err := w.Client.List(ctx, list, client.InNamespace(w.Namespace)); err != nil {
			w.Fatalf("waiting until %s: %v", what, err)
		}
		if holds(list) {
			return
		}
		events, err := w.Client.Watch(ctx, list, client.InNamespace(w.Namespace),
			&client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: list.GetResourceVersion()}})
		if err != nil {
			w.Fatalf("waiting until %s: %v", what, err)
		}
		event, open := <-events.ResultChan()
		events.Stop()
		if ctx.Err() != nil {
			w.Fatalf("waited %s until %s: %s", Patience, what, w.State(list))
		}
		if open && event.Type == watch.Error {
			continue // the list has the truth
		}
	}
}

// UntilOne waits until the condition holds for the object of this name, and gives it. The list is an empty one of its kind.
func UntilOne[L client.ObjectList, O client.Object](w *World, list L, name, what string, holds func(O) bool) (found O) {
	w.Helper()
	Until(w, list, name+" "+what, func(list L) bool {
		done := false
		err := meta.EachListItem(list, func(item runtime.Object) error {
			if o := item.(O); o.GetName() == name && holds(o) {
				found, done = o, true
			}
			return nil
		})
		if err != nil {
			w.Fatal(err)
		}
		return done
	})
	return found
}

// UntilWorkloadOf waits until the condition holds for the Workload that the job of this name controls, and gives it.
func (w *World) UntilWorkloadOf(job, what string, holds func(*kueue.Workload) bool) (found *kueue.Workload) {
	w.Helper()
	Until(w, &kueue.WorkloadList{}, "the Workload of "+job+" "+what, func(list *kueue.WorkloadList) bool {
		for i := range list.Items {
			if owner := metav1.GetControllerOf(&list.Items[i]); owner != nil && owner.Name == job && holds(&list.Items[i]) {
				found = &list.Items[i]
				return true
			}
		}
		return false
	})
	return found
}

// UntilPods waits until the condition holds for the pods, by their names.
func (w *World) UntilPods(what string, holds func(map[string]corev1.Pod) bool) {
	w.Helper()
	Until(w, &corev1.PodList{}, what, func(list *corev1.PodList) bool {
		byName := map[string]corev1.Pod{}
		for _, pod := range list.Items {
			byName[pod.Name] = pod
		}
		return holds(byName)
	})
}

// UntilEvent waits for an event of the reason about the object of this name, and gives it.
func (w *World) UntilEvent(about, reason string) (found eventsv1.Event) {
	w.Helper()
	Until(w, &eventsv1.EventList{}, about+" is told "+reason, func(list *eventsv1.EventList) bool {
		for _, event := range list.Items {
			if event.Regarding.Name == about && event.Reason == reason {
				found = event
				return true
			}
		}
		return false
	})
	return found
}
