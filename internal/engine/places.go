package engine

import (
	"maps"
	"slices"

	"github.com/musterhq/muster/internal/engine/order"
)

// publishNodes tells all that wait what has changed on the nodes: the classes that were short of places, the families of
// workloads with promised places, and the queues of workloads that would be larger.
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
	for _, key := range slices.SortedFunc(maps.Keys(e.nodes.NominatedPlaces), order.CompareKeys) {
		if f := e.nodes.NominatedPlaces[key].ClusterQueue.Family; f != nil {
			f.Enqueue()
		}
	}
}
