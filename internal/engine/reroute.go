package engine

import (
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/musterhq/muster/internal/engine/state"
)

// reroute routes all workloads of changed queues again, within the budget. ClusterQueues come first, so that a workload
// that moves between two of them is routed only once.
func (p *pass) reroute() {
	for _, name := range sets.List(p.engine.routing.changed) {
		p.engine.routing.changed.Delete(name)
		q := p.engine.queue(name)
		for w := q.Unrouted.First(); w != nil; w = q.Unrouted.First() {
			if p.budget <= 0 {
				p.engine.routing.changed.Insert(name)
				return
			}
			p.engine.route(w)
			p.budget--
		}
	}
	for _, l := range p.engine.routing.relocatedByLength() {
		if !p.rerouteMembers(l) {
			return
		}
		p.engine.routing.relocated.Delete(l.Key)
	}
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
	p.engine.routing.forgetLeft(l)
	return true
}
