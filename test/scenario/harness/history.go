package harness

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
)

// History has every state of the namespace's Workloads that a watch has reported since the history began, including
// states that lasted only briefly.
type History struct {
	world *World

	mu sync.Mutex
	// recorded is signalled for each recorded state.
	recorded *sync.Cond
	// states are keyed by the name of the Workload's job, or of the Workload if it has no job.
	states map[string][]kueue.Workload
	// deleted has the names whose last Workload was deleted.
	deleted map[string]bool
}

// Record starts a history of a world. The functions in also handle each event before tests that wait for it continue.
func Record(w *World, also ...func(watch.Event)) *History {
	w.Helper()
	h := &History{world: w, states: map[string][]kueue.Workload{}, deleted: map[string]bool{}}
	h.recorded = sync.NewCond(&h.mu)
	Follow(w, &kueue.WorkloadList{}, func(event watch.Event) {
		for _, handle := range also {
			handle(event)
		}
		o := event.Object.(*kueue.Workload)
		name := recordedName(o)
		h.states[name] = append(h.states[name], *o)
		h.deleted[name] = event.Type == watch.Deleted
		h.recorded.Broadcast()
	}, &h.mu)
	return h
}

// Follow calls handle, with lock held, for every event of the objects of a kind in the world's namespace.
func Follow(w *World, list client.ObjectList, handle func(watch.Event), lock sync.Locker) {
	w.Helper()
	events, err := w.Client.Watch(w.Context(), list, client.InNamespace(w.Namespace))
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(events.Stop)
	go func() {
		for event := range events.ResultChan() {
			if _, ok := event.Object.(client.Object); ok {
				lock.Lock()
				handle(event)
				lock.Unlock()
			}
		}
	}()
}

// Conditions returns the conditions of the type that a Workload had, in order. name is that of its job, or of the
// Workload if it has no job.
func (h *History) Conditions(name, kind string) []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var lines []string
	for _, state := range h.states[name] {
		if c := meta.FindStatusCondition(state.Status.Conditions, kind); c != nil {
			lines = append(lines, fmt.Sprintf("%s %s: %s", c.Status, c.Reason, c.Message))
		}
	}
	return slices.Compact(lines)
}

// WaitFor waits until the history contains this version of the Workload: another watch may be ahead.
func (h *History) WaitFor(now *kueue.Workload) {
	h.world.Helper()
	h.until(fmt.Sprintf("the watch has reported version %[2]s of Workload %[1]s", now.Name,
		now.ResourceVersion), func() bool {
		return slices.ContainsFunc(h.states[recordedName(now)],
			func(state kueue.Workload) bool { return state.ResourceVersion == now.ResourceVersion })
	})
}

// Since returns the states of the Workload after this one. Call WaitFor first for the last state to be included.
func (h *History) Since(seen *kueue.Workload) []kueue.Workload {
	h.mu.Lock()
	defer h.mu.Unlock()
	states := h.states[recordedName(seen)]
	at := slices.IndexFunc(states,
		func(state kueue.Workload) bool { return state.ResourceVersion == seen.ResourceVersion })
	return slices.Clone(states[at+1:])
}

// UntilDeleted waits until the history has the deletion of the Workload, and returns its last state.
func (h *History) UntilDeleted(name string) *kueue.Workload {
	h.world.Helper()
	h.until("the Workload of "+name+" is deleted", func() bool { return h.deleted[name] })
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.states[name][len(h.states[name])-1].DeepCopy()
}

func (h *History) until(what string, holds func() bool) {
	h.world.Helper()
	ctx, cancel := context.WithTimeout(h.world.Context(), Patience)
	defer cancel()
	defer context.AfterFunc(ctx, h.recorded.Broadcast)()
	h.mu.Lock()
	defer h.mu.Unlock()
	for !holds() {
		if ctx.Err() != nil {
			h.world.Fatalf("waited %s until %s: %s", Patience, what, h.world.State())
		}
		h.recorded.Wait()
	}
}

// recordedName returns the name by which a Workload is recorded.
func recordedName(o *kueue.Workload) string {
	if len(o.OwnerReferences) == 1 {
		return o.OwnerReferences[0].Name
	}
	return o.Name
}
