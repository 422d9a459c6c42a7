package engine

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/musterhq/muster/internal/engine/order"
)

// rerouteChanged routes all workloads of changed queues again, within the budget. ClusterQueues come first, so that a
// workload that moves between two of them is routed only once.
func (p *pass) rerouteChanged() {
	for _, name := range sets.List(p.changed) {
		p.changed.Delete(name)
		q := p.queue(name)
		for w := q.unrouted.first(); w != nil; w = q.unrouted.first() {
			if p.budget <= 0 {
				p.changed.Insert(name)
				return
			}
			p.route(w)
			p.budget--
		}
	}
	for _, key := range slices.SortedFunc(maps.Keys(p.relocated), order.CompareKeys) {
		if !p.rerouteMembers(p.localQueues[key]) {
			return
		}
		p.relocated.Delete(key)
	}
}

// rerouteMembers does so for a LocalQueue; a workload that holds quota keeps it. It reports whether all workloads are
// done.
func (p *pass) rerouteMembers(l *localQueue) bool {
	for w := l.unrouted.first(); w != nil; w = l.unrouted.first() {
		if p.budget <= 0 {
			return false
		}
		p.budget--
		if w.held == nil {
			p.route(w)
			continue
		}
		l.markRouted(w)
		if w.listedIn != nil && w.queue.family != nil { // it may be able to grow now, or no longer
			p.updateCharges(w)
			w.queue.family.enqueue()
		}
	}
	l.left = nil
	return true
}
