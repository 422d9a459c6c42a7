package engine

import (
	"maps"
	"slices"

	"github.com/musterhq/muster/internal/engine/nodes"
	"github.com/musterhq/muster/internal/engine/order"
	"github.com/musterhq/muster/internal/engine/place"
	"github.com/musterhq/muster/internal/engine/state"
)

// A job may come to want fewer pods than it has while it runs. Its workload is then shrunk as if others needed those
// pods, so that their quota is free once they are gone; it can grow again if the job wants more.

// shrinkSurplus shrinks these workloads before any other shrinks for what they have too much. One with a decision in
// flight, or a rejected one, is skipped: updateCharges notes it again once that is resolved.
func (g *growthPass) shrinkSurplus() {
	for _, key := range slices.SortedFunc(maps.Keys(g.pass.engine.growths.Surplus), order.CompareKeys) {
		if g.pass.budget <= 0 {
			return
		}
		g.pass.engine.growths.Surplus.Delete(key)
		w := g.pass.engine.workloads[key]
		at := w.ElasticSet()
		if at < 0 || !w.MayResize() || w.Assumed != state.Nothing {
			continue
		}
		g.pass.budget--
		given := g.sizedToRunning(w, at, w.PodSet(w.Held.PodSets[at].PodSet).Most())
		g.pass.resize(w, at, given, Key{})
		g.pass.decisions[len(g.pass.decisions)-1].Resize.Unwanted = true
	}
}

// sizedToRunning returns the admission with fewer pods, at the places that have pods as far as possible: a job keeps the
// pods that run, and may want fewer because others cannot be placed. Ranks in slices stay where they are.
func (g *growthPass) sizedToRunning(w *state.Workload, at int, to int32) *Admission {
	set := &w.Held.PodSets[at]
	given := w.Held.Sized(at, to, nil)
	if len(set.Places) > 0 && !w.PodSet(set.PodSet).Tied() {
		empty := nodes.Beyond(nodes.Merge(nil, set.Places), g.pass.engine.nodes.Places.PodNodes(w.Key, set.PodSet, nil))
		given.PodSets[at].Places = place.Shrink(set.Places, empty, set.Count-to)
	}
	return given
}
