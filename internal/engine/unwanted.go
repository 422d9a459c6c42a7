package engine

import (
	"maps"
	"slices"

	"github.com/musterhq/muster/internal/engine/order"
)

// A job may come to want fewer pods than it was given while it runs. It is told to be smaller then, as if others needed these, so
// that their quota is somebody else's once they are gone; and it can grow again if it wants more.

// noteUnwanted notes whether the workload holds pods that its job wants no more.
func (e *Engine) noteUnwanted(w *workload) {
	if at := w.elasticSet(); at >= 0 && w.held.PodSets[at].Count > w.podSet(w.held.PodSets[at].PodSet).Most() {
		e.unwanted.Insert(w.Key)
	} else {
		e.unwanted.Delete(w.Key)
	}
}

// dropUnwanted has those be smaller of whom that is so, before anybody else yields for what they have too much. Of whom
// something is on its way, or was refused, it is noted again once that is settled.
func (p *pass) dropUnwanted() {
	for _, key := range slices.SortedFunc(maps.Keys(p.unwanted), order.CompareKeys) {
		if p.budget <= 0 {
			return
		}
		p.unwanted.Delete(key)
		w := p.workloads[key]
		_, at, ok := w.elasticJob()
		if !ok || w.assumed != nothing {
			continue
		}
		p.budget--
		given := w.held.sized(at, w.podSet(w.held.PodSets[at].PodSet).Most(), nil)
		p.resize(w, at, given, Key{})
		p.decisions[len(p.decisions)-1].Resize.Unwanted = true
	}
}
