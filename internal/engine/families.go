package engine

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/musterhq/muster/internal/engine/calendar"
	"github.com/musterhq/muster/internal/engine/fair"
	"github.com/musterhq/muster/internal/engine/order"
	"github.com/musterhq/muster/internal/engine/state"
	"github.com/musterhq/muster/internal/engine/waiting"
)

// reshape rebuilds the families after quotas or cohorts have changed. Families that are not affected stay as they
// are.
func (e *Engine) reshape() {
	e.nodes.NodesVersion++
	concerned := sets.New[*state.ClusterQueue]()
	e.routing.markAffected(concerned) // by the tree as it was
	groups := map[string][]*state.ClusterQueue{}
	for _, name := range slices.Sorted(maps.Keys(e.queues)) {
		q := e.queues[name]
		if q.Unreferenced() {
			delete(e.queues, name)
			e.routing.changed.Delete(name)
			continue
		}
		was := q.Node
		if q.Node = e.tree.Queue(name); q.Node != nil && q.Node.Cyclic() {
			q.Node = nil
		}
		q.Waits.Node = q.Node
		if was != q.Node {
			e.routing.queueChanged(q)
		}
		key := q.FamilyName()
		groups[key] = append(groups[key], q)
	}
	e.routing.markAffected(concerned)    // by the tree as it is now
	e.evaluator.Ranking = fair.Ranking{} // forget cohorts that no longer exist
	before := e.families
	e.families = map[string]*state.Family{}
	e.reshaped = false
	e.routing.recohorted.Clear()
	for key, queues := range groups {
		if f := before[key]; f != nil && !slices.ContainsFunc(queues, concerned.Has) {
			e.families[key] = f
		} else {
			e.startFamily(key, queues)
		}
	}
	e.starts.restart(e.families)
}

// startFamily starts a family without nominations, in which every class is evaluated.
func (e *Engine) startFamily(key string, queues []*state.ClusterQueue) {
	f := &state.Family{Name: key, Queues: queues, Agenda: &e.agenda, Planned: slices.ContainsFunc(queues,
		func(q *state.ClusterQueue) bool { return q.Family != nil && q.Family.Planned })}
	if key != "" && slices.ContainsFunc(queues, func(q *state.ClusterQueue) bool { return q.Waits.Backfill }) {
		f.Backfills, f.Calendar, f.Promised = true, calendar.New(), map[Key]*state.Workload{}
	}
	if key != "" {
		e.families[key] = f
		f.Enqueue()
		f.Waits = waiting.NewFamily(waitsOf(queues), f.Enqueue)
	}
	for _, q := range queues {
		e.tallies.markUsage(q.Name)
		e.tallies.markShares(q)
		q.Family, q.Published, q.Resizable = nil, state.HoldBack{}, nil
		if key != "" {
			q.Family = f
		} else {
			q.Waits.LeaveFamily()
		}
		for _, w := range q.Nominees(e.workloads) {
			e.route(w)
		}
		for _, h := range q.Holders {
			e.evictions.forget(h.Key) // an earlier preemption may not be justified any more
		}
		for _, c := range q.Classes {
			c.MakeReady()
		}
	}
}

// waitsOf returns what the waiting room knows of the queues.
func waitsOf(queues []*state.ClusterQueue) []*waiting.Queue {
	out := make([]*waiting.Queue, len(queues))
	for i, q := range queues {
		out[i] = q.Waits
	}
	return out
}

// publishNodes tells all that wait what has changed on the nodes: the classes that were short of places, the families
// of workloads with nominated places, and the queues of workloads that would be larger.
func (e *Engine) publishNodes() {
	if now := e.nodes.Places.Changes(); now != e.nodesPublishedAt {
		e.nodesPublishedAt = now
		for _, f := range e.families {
			if f.Waits.DependsOnUse() {
				f.Enqueue()
			}
		}
	}
	freed, reduced := e.nodes.Places.TakeFreed(), e.nodes.Places.TakeReduced()
	for _, name := range reduced {
		e.waiting.NodesReduced(name)
	}
	if len(freed) == 0 {
		return
	}
	for _, q := range e.queues {
		if q.Cramped && q.Family != nil {
			q.Cramped = false
			q.Family.Enqueue()
		}
	}
	for _, name := range freed {
		e.waiting.NodesFreed(name)
	}
	for _, key := range order.SortedKeys(e.nodes.NominatedPlaces) {
		e.nodes.NominatedPlaces[key].ClusterQueue.Family.Enqueue()
	}
}
