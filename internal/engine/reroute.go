package engine

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/musterhq/muster/internal/engine/order"
	"github.com/musterhq/muster/internal/engine/state"
)

// reroute routes all workloads of changed queues again, within the budget. ClusterQueues come first, so that a workload
// that moves between two of them is routed only once.
func (p *pass) reroute() {
	for _, name := range sets.List(p.engine.changed) {
		p.engine.changed.Delete(name)
		q := p.engine.queue(name)
		for w := q.Unrouted.First(); w != nil; w = q.Unrouted.First() {
			if p.budget <= 0 {
				p.engine.changed.Insert(name)
				return
			}
			p.engine.route(w)
			p.budget--
		}
	}
	for _, l := range p.engine.relocatedByLength() {
		if !p.rerouteMembers(l) {
			return
		}
		p.engine.relocated.Delete(l.Key)
	}
}

// relocatedByLength returns the LocalQueues that have changed, those with the fewest workloads to route first: whoever
// changes a long one again and again delays the others no longer than these take.
func (e *Engine) relocatedByLength() []*state.LocalQueue {
	out := make([]*state.LocalQueue, 0, e.relocated.Len())
	for key := range e.relocated {
		out = append(out, e.localQueues[key])
	}
	slices.SortFunc(out, func(a, b *state.LocalQueue) int {
		return cmp.Or(cmp.Compare(a.Unrouted.Len(), b.Unrouted.Len()), order.CompareKeys(a.Key, b.Key))
	})
	return out
}

// rerouteMembers does so for a LocalQueue: a workload that holds quota keeps it. It reports whether all workloads are
// done.
func (p *pass) rerouteMembers(l *state.LocalQueue) bool {
	for w := l.Unrouted.First(); w != nil; w = l.Unrouted.First() {
		if p.budget <= 0 {
			return false
		}
		p.budget--
		if w.Held == nil {
			p.engine.route(w)
			continue
		}
		l.MarkRouted(w)
		if w.ListedIn != nil && w.ClusterQueue.Family != nil { // it may be able to grow now, or no longer
			p.engine.updateCharges(w)
			w.ClusterQueue.Family.Enqueue()
		}
	}
	p.engine.forgetLeft(l)
	return true
}

// markUnsorted marks the families in which some workloads must be routed again, those included that such workloads are
// to leave: nothing is decided there before all are sorted. It reports whether there are any. It may stop once all on
// the agenda, of which there are so many, are marked.
func (e *Engine) markUnsorted(onAgenda int) (any bool) {
	for _, f := range e.families {
		f.Unsorted = false
	}
	mark := func(q *state.ClusterQueue) {
		if q != nil && q.Family != nil && !q.Family.Unsorted {
			q.Family.Unsorted, any = true, true
			if q.Family.Dirty {
				onAgenda--
			}
		}
	}
	for name := range e.changed {
		mark(e.queues[name])
	}
	if onAgenda == 0 {
		return any
	}
	for key := range e.relocated {
		l := e.localQueues[key]
		mark(e.queues[l.ClusterQueue])
		for _, q := range l.Left {
			mark(q)
		}
	}
	return any
}
