package engine

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/musterhq/muster/internal/engine/order"
)

// reroute routes all workloads of changed queues again, within the budget. ClusterQueues come first, so that a workload
// that moves between two of them is routed only once.
func (p *pass) reroute() {
	for _, name := range sets.List(p.engine.changed) {
		p.engine.changed.Delete(name)
		q := p.engine.queue(name)
		for w := q.unrouted.First(); w != nil; w = q.unrouted.First() {
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
func (e *Engine) relocatedByLength() []*localQueue {
	out := make([]*localQueue, 0, e.relocated.Len())
	for key := range e.relocated {
		out = append(out, e.localQueues[key])
	}
	slices.SortFunc(out, func(a, b *localQueue) int {
		return cmp.Or(cmp.Compare(a.unrouted.Len(), b.unrouted.Len()), order.CompareKeys(a.Key, b.Key))
	})
	return out
}

// rerouteMembers does so for a LocalQueue: a workload that holds quota keeps it. It reports whether all workloads are
// done.
func (p *pass) rerouteMembers(l *localQueue) bool {
	for w := l.unrouted.First(); w != nil; w = l.unrouted.First() {
		if p.budget <= 0 {
			return false
		}
		p.budget--
		if w.held == nil {
			p.engine.route(w)
			continue
		}
		l.markRouted(w)
		if w.listedIn != nil && w.queue.family != nil { // it may be able to grow now, or no longer
			p.engine.updateCharges(w)
			w.queue.family.enqueue()
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
		f.unsorted = false
	}
	mark := func(q *clusterQueue) {
		if q != nil && q.family != nil && !q.family.unsorted {
			q.family.unsorted, any = true, true
			if q.family.dirty {
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
		for _, q := range l.left {
			mark(q)
		}
	}
	return any
}
