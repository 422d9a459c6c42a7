package harness

import (
	"cmp"
	"context"
	"reflect"
	"slices"
	"strings"
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
const Patience = 4 * time.Minute

// Until waits, with a watch, until the condition holds for the items in the world's namespace. The condition is
// evaluated for the initial list and after each event, so that no short-lived state is missed; list ends up as it was
// when the condition held. what completes the failure message "waited 4m0s until", which includes the state of the
// world.
func Until[L client.ObjectList](w *World, list L, what string, holds func(L) bool) {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.Context(), Patience)
	defer cancel()
	for {
		if err := w.Client.List(ctx, list, client.InNamespace(w.Namespace)); err != nil {
			w.Fatalf("waiting until %s: %v", what, err)
		}
		items, err := meta.ExtractList(list)
		if err == nil {
			err = meta.SetList(list, items) // deep copies, which the condition may modify
		}
		if err != nil {
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
		found, err := follow(events, items, list, holds)
		events.Stop()
		switch {
		case err != nil:
			w.Fatalf("waiting until %s: %v", what, err)
		case found:
			return
		case ctx.Err() != nil:
			w.Fatalf("waited %s until %s: %s", Patience, what, w.State(list))
		} // otherwise the watch has ended: list again
	}
}

// follow applies each event to the list and its items, until the condition holds or the watch ends.
func follow[L client.ObjectList](events watch.Interface, items []runtime.Object, list L,
	holds func(L) bool) (found bool, err error) {
	order := func(a, b runtime.Object) int {
		one, other := a.(client.Object), b.(client.Object)
		return cmp.Or(strings.Compare(one.GetNamespace(), other.GetNamespace()),
			strings.Compare(one.GetName(), other.GetName()))
	}
	slices.SortFunc(items, order)
	for event := range events.ResultChan() {
		if event.Type == watch.Error {
			return false, nil
		}
		at, present := slices.BinarySearchFunc(items, event.Object, order)
		switch {
		case event.Type == watch.Deleted && present:
			items = slices.Delete(items, at, at+1)
		case event.Type == watch.Deleted:
		case present:
			items[at] = event.Object
		default:
			items = slices.Insert(items, at, event.Object)
		}
		if err := meta.SetList(list, items); err != nil {
			return false, err
		}
		if holds(list) {
			return true, nil
		}
	}
	return false, nil
}

// UntilOne waits until the condition holds for the object of this name, and returns it. list is an empty list of its
// kind.
func UntilOne[L client.ObjectList, O client.Object](w *World, list L, name, what string, holds func(O) bool) (found O) {
	w.Helper()
	kind := strings.TrimSuffix(cmp.Or(list.GetObjectKind().GroupVersionKind().Kind,
		reflect.TypeOf(list).Elem().Name()), "List")
	Until(w, list, kind+" "+name+" "+what, func(list L) bool {
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

// UntilWorkloadOf waits until the condition holds for the Workload controlled by the job of this name, and returns it.
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

// UntilPods waits until the condition holds for the pods, keyed by name.
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

// UntilEvent waits for an event with the reason about the object of this name, and returns it.
func (w *World) UntilEvent(about, reason string) (found eventsv1.Event) {
	w.Helper()
	Until(w, &eventsv1.EventList{}, about+" has the event "+reason, func(list *eventsv1.EventList) bool {
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
