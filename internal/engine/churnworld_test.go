package engine

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/musterhq/muster/internal/engine/waiting"
)

// churnWorld is the part of a world whose objects come and go: what the world has, and what it had.
type churnWorld struct {
	// there are the objects that exist, removed those that were deleted, by what they are.
	there, removed map[string]Event
	// past are earlier states of jobs.
	past []WorkloadSet
}

// identity returns what the event is about, and whether it says that this was deleted.
func identity(ev Event) (of string, deleted bool) {
	switch ev := ev.(type) {
	case ClusterQueueSet:
		return "queue " + ev.Name, false
	case ClusterQueueDeleted:
		return "queue " + ev.Name, true
	case LocalQueueSet:
		return "local " + ev.Key.Namespace + "/" + ev.Key.Name, false
	case LocalQueueDeleted:
		return "local " + ev.Key.Namespace + "/" + ev.Key.Name, true
	case CohortSet:
		return "cohort " + ev.Name, false
	case CohortDeleted:
		return "cohort " + ev.Name, true
	case FlavorSet:
		return "flavor " + ev.Name, false
	case FlavorDeleted:
		return "flavor " + ev.Name, true
	case NamespaceSet:
		return "namespace " + ev.Name, false
	case NamespaceDeleted:
		return "namespace " + ev.Name, true
	case TopologySet:
		return "topology " + ev.Name, false
	case TopologyDeleted:
		return "topology " + ev.Name, true
	case NodeSet:
		return "node " + ev.Name, false
	case NodeDeleted:
		return "node " + ev.Name, true
	case PodBound:
		return "pod " + ev.Key.Name, false
	case PodGone:
		return "pod " + ev.Key.Name, true
	}
	return "", false
}

// deletionOf returns the event that the object is deleted.
func deletionOf(ev Event) Event {
	switch ev := ev.(type) {
	case ClusterQueueSet:
		return ClusterQueueDeleted{ev.Name}
	case LocalQueueSet:
		return LocalQueueDeleted{ev.Key}
	case CohortSet:
		return CohortDeleted{ev.Name}
	case FlavorSet:
		return FlavorDeleted{ev.Name}
	case NamespaceSet:
		return NamespaceDeleted{ev.Name}
	case TopologySet:
		return TopologyDeleted{ev.Name}
	}
	return nil // those come and go in other steps
}

// note keeps what exists.
func (c *churnWorld) note(ev Event) {
	if ev, ok := ev.(WorkloadSet); ok {
		c.past = append(c.past, ev)
		return
	}
	of, deleted := identity(ev)
	switch {
	case of == "":
	case deleted:
		if was := c.there[of]; was != nil {
			c.removed[of] = was
		}
		delete(c.there, of)
	default:
		c.there[of] = ev
		delete(c.removed, of)
	}
}

// startChurn lets the objects of the world come and go from now on.
func (w *world) startChurn() {
	w.churn = &churnWorld{there: map[string]Event{}, removed: map[string]Event{}}
	for _, entry := range w.log {
		w.churn.note(entry.event)
	}
}

// churnStep deletes an object or creates it again, or delivers an event twice or late.
func (w *world) churnStep(t *rapid.T) {
	c := w.churn
	switch kind := rapid.IntRange(0, 9).Draw(t, "kind of churn"); {
	case kind < 2:
		var names []string
		for _, of := range slices.Sorted(maps.Keys(c.there)) {
			if deletionOf(c.there[of]) != nil {
				names = append(names, of)
			}
		}
		if len(names) > 0 {
			w.apply(deletionOf(c.there[rapid.SampledFrom(names).Draw(t, "deleted")]))
		}
	case kind < 5:
		w.recreateOne(t)
	case kind < 6 && len(c.there) > 0: // the same again
		w.apply(c.there[rapid.SampledFrom(slices.Sorted(maps.Keys(c.there))).Draw(t, "twice")])
	case kind < 7 && len(c.past) > 0: // late
		late := rapid.SampledFrom(c.past).Draw(t, "late")
		if job, there := w.jobs[late.Key.Name]; there && job.UID == late.UID &&
			late.Version < w.engine.workloads[late.Key].Version {
			w.apply(late)
		}
	case kind < 8:
		w.replaceJob(t)
	case kind < 9:
		w.editJob(t)
	default:
		if w.nodes != nil {
			w.refuseNode(t)
		}
	}
}

func (w *world) recreateOne(t *rapid.T) {
	if names := slices.Sorted(maps.Keys(w.churn.removed)); len(names) > 0 {
		of := rapid.SampledFrom(names).Draw(t, "created again")
		if ev := w.churn.removed[of]; deletionOf(ev) != nil {
			if l, ok := ev.(LocalQueueSet); ok {
				w.locals[l.Key] = l
			}
			w.apply(ev)
		}
	}
}

// replaceJob deletes a job and creates another one of its name, of which the deletion may go unseen.
func (w *world) replaceJob(t *rapid.T) {
	names := w.names()
	if len(names) == 0 {
		return
	}
	name := rapid.SampledFrom(names).Draw(t, "replaced job")
	was := w.jobs[name]
	if rapid.Bool().Draw(t, "its deletion is seen") {
		w.apply(WorkloadGone{was.Key})
	}
	ev := job(name, rapid.SampledFrom(queueNames).Draw(t, "its queue"), 1, 1,
		rapid.Int32Range(-1, 1).Draw(t, "its priority"), len(w.log))
	ev.UID, ev.Key, ev.Version = fmt.Sprintf("%s-%d", name, len(w.log)), was.Key, was.Version+10
	ev.PodSets = was.PodSets
	w.jobs[name] = ev
	w.apply(ev)
}

// editJob changes the spec of a job that holds nothing.
func (w *world) editJob(t *rapid.T) {
	names := w.names()
	if len(names) == 0 {
		return
	}
	ev := w.jobs[rapid.SampledFrom(names).Draw(t, "edited job")]
	if ev.Admission != nil {
		return
	}
	switch rapid.IntRange(0, 3).Draw(t, "edited") {
	case 0:
		ev.Priority = rapid.Int32Range(-1, 1).Draw(t, "new priority")
	case 1:
		ev.Queue = rapid.SampledFrom([]string{"p", "q", "r", "nowhere", ""}).Draw(t, "new queue")
	case 2:
		ev.QueuedAt = epoch.Add(ev.QueuedAt.Sub(epoch) / 2)
	default:
		ev.PodSets = slices.Clone(ev.PodSets)
		ev.PodSets[0].Count++
	}
	ev.Generation++
	ev.Version++
	w.jobs[ev.Key.Name] = ev
	w.apply(ev)
}

// refuseNode makes kube-scheduler refuse a place.
func (w *world) refuseNode(t *rapid.T) {
	if slots := w.slots(); len(slots) > 0 {
		slot := rapid.SampledFrom(slots).Draw(t, "refused place")
		w.apply(PodUnschedulable{Workload: slot.Workload, Node: slot.Node, Why: "it is haunted"})
	}
}

// checkChurn checks the property in worlds of all kinds whose objects come and go.
func checkChurn(t *testing.T, property func(t *rapid.T, w *world)) {
	check(t, func(t *rapid.T, w *world) {
		w.startChurn()
		property(t, w)
	})
}

// rebuilt returns an engine that knows only what exists now, in whatever order.
func (w *world) rebuilt(t *rapid.T) *Engine {
	var events []Event
	for _, of := range slices.Sorted(maps.Keys(w.churn.there)) {
		events = append(events, w.churn.there[of])
	}
	for _, name := range w.names() {
		events = append(events, w.jobs[name])
	}
	fresh := w.newEngine()
	for _, ev := range rapid.Permutation(events).Draw(t, "order of the list") {
		fresh.Apply(ev)
	}
	return fresh
}

// TestQueueIsForgottenWithItsLastWorkload: of a ClusterQueue that is gone nothing is kept once the last workload that
// held its quota is gone, whatever happened to its LocalQueue before.
func TestQueueIsForgottenWithItsLastWorkload(t *testing.T) {
	s := newScene(t, Options{}, defaultFlavor, queueOf("q", "", 1), localOf("q"))
	s.happens(job("w", "q", 1, 1, 0, 0))
	for _, ev := range []Event{ClusterQueueDeleted{"q"}, LocalQueueDeleted{localOf("q").Key}, gone("w")} {
		if len(s.engine.queues) != 1 {
			t.Fatalf("before %T %d queues are known, want one", ev, len(s.engine.queues))
		}
		s.happens(ev)
	}
	if left := len(s.engine.queues); left != 0 {
		t.Errorf("%d queues are known, want none", left)
	}
}

// TestRebuiltEngineHasTheSameUsage: what an engine has of the queues after objects came and went, some of them unseen
// or late, is what another one has that starts from what is left.
func TestRebuiltEngineHasTheSameUsage(t *testing.T) {
	checkChurn(t, func(t *rapid.T, w *world) {
		for range rapid.IntRange(1, 60).Draw(t, "events") {
			w.step(t)
		}
		w.settle(t)
		fresh := w.rebuilt(t)
		fresh.Arrange(w.engine.growths.Now)
		w.engine.Arrange(w.engine.growths.Now)
		for _, name := range queueNames {
			want, wantOK := fresh.QueueUsage(name)
			got, gotOK := w.engine.QueueUsage(name)
			if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" || gotOK != wantOK {
				w.describe(t)
				t.Fatalf("usage of %s (-rebuilt +incremental):\n%s", name, diff)
			}
		}
		for key := range w.locals {
			want, _ := fresh.LocalQueueUsage(key)
			got, _ := w.engine.LocalQueueUsage(key)
			want.Consumption, got.Consumption = nil, nil
			if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Fatalf("usage of %s (-rebuilt +incremental):\n%s", key, diff)
			}
		}
		w.wantNoDecisions(t, fresh)
	})
}

// TestNothingIsLeftOfWhatIsGone: once all objects are deleted, the engine keeps nothing of them.
func TestNothingIsLeftOfWhatIsGone(t *testing.T) {
	checkChurn(t, func(t *rapid.T, w *world) {
		for range rapid.IntRange(1, 60).Draw(t, "events") {
			w.step(t)
		}
		var events []Event
		for _, of := range slices.Sorted(maps.Keys(w.churn.there)) {
			switch ev := w.churn.there[of].(type) {
			case NodeSet:
				events = append(events, NodeDeleted{ev.Name})
			case PodBound:
				events = append(events, PodGone{ev.Key})
			default:
				events = append(events, deletionOf(ev))
			}
		}
		for _, name := range w.names() {
			events = append(events, WorkloadGone{w.jobs[name].Key})
		}
		for _, ev := range rapid.Permutation(events).Draw(t, "order of the deletions") {
			w.engine.Apply(ev)
		}
		w.engine.TakeSuperseded()
		w.engine.TakeChangedQueues()
		decideAll(w.engine, w.clock.Add(24*time.Hour))
		e := w.engine
		left := map[string]int{"queues": len(e.queues), "localQueues": len(e.localQueues), "flavors": len(e.nodes.Flavors),
			"namespaces": len(e.namespaces),
			"workloads":  len(e.workloads), "shapes": len(e.shapes), "unwanted": e.growths.Surplus.Len(),
			"withdrawals": e.evictions.written.Len(),
			"topologies":  len(e.nodes.Topologies), "families": len(e.families), "agenda": len(e.agenda),
			"unready": e.tallies.unready, "timers": e.waiting.Timers.Len(),
			"avoiding": e.avoidances.untimed.Len(), "superseded": len(e.superseded),
			"changed": e.routing.changed.Len(), "relocated": e.routing.relocated.Len(), "recohorted": e.routing.recohorted.Len(),
			"unreported":      e.reports.unreported.len(),
			"nominatedPlaces": len(e.nodes.NominatedPlaces), "departing": e.nodes.Departing, "toRepair": e.nodes.ToRepair.Len(),
			"deferred":      e.nodes.DeferredRepairs.Len(),
			"workloadOfPod": len(e.nodes.WorkloadOfPod), "podCounts": len(e.nodes.PodCounts),
			"lingering": e.nodes.Lingering.Len(), "within": e.nodes.Within.Len()}
		if e.waiting.NextToCheck(func(*waiting.Class) bool { return true }) != nil {
			left["blocked"] = 1
		}
		maps.DeleteFunc(left, func(_ string, n int) bool { return n == 0 })
		if len(left) > 0 {
			t.Fatalf("left: %v", left)
		}
	})
}
