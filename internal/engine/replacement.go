package engine

import (
	"slices"

	"github.com/musterhq/muster/internal/engine/nodes"
	"github.com/musterhq/muster/internal/engine/place"
	"github.com/musterhq/muster/internal/engine/state"
)

// reviewReplacements queues the repair of the workloads that wait for other places, if these may have changed.
func (r *repairPass) reviewReplacements() {
	for _, w := range r.nodes.Replacing {
		if r.nodes.MayBeReplaced(w) {
			r.nodes.ToRepair.Push(w.Rank())
		}
	}
}

// awaitReplacement has a workload keep the pods that have places, and wait for other places for the rest, which leaving
// workloads still use. If need be it evicts workloads for them, by the rules by which it could evict them if it were
// waiting itself. It reports whether there are such places.
//
// It ends: while no place changes it is not called again, places nominated once are kept for as long as they would be
// free, and each search for others evicts workloads that it precedes from then on.
func (r *repairPass) awaitReplacement(w *state.Workload) bool {
	if r.nodes.RefusedItsPods(w) {
		r.nodes.DropReplacement(w)
		return false // what kube-scheduler refuses on one node it may refuse on each: others would be evicted in vain
	}
	if !r.keepsReplacement(w) {
		r.nodes.DropReplacement(w)
		if !r.nominateReplacement(w) && !r.preemptForReplacement(w) {
			return false
		}
	}
	w.Replacement.CheckedAt = r.nodes.PlacesVersion
	return true
}

// keepsReplacement reports whether the nominated places are as many as the workload needs, and will still be free. A
// place that it lost to a pod that is leaving needs none: it is its own again once that pod is gone. Where all its pods
// move, as those of a slice do, some of the nominated places may be its own: these are free for it, although not beside
// it.
func (r *repairPass) keepsReplacement(w *state.Workload) (keeps bool) {
	if w.Replacement == nil || r.nodes.Departing == 0 {
		return false
	}
	nominated := map[string]int32{}
	var asks []place.Ask
	var at []place.Assignment
	for _, set := range w.Replacement.Nominated.PodSets {
		nominated[set.Ask.PodSet] += nodes.CountOf(set.Nodes)
		asks, at = append(asks, set.Ask), append(at, place.Assignment{PodSet: set.Ask.PodSet, Nodes: set.Nodes})
	}
	r.nodes.Places.Try(func() {
		r.nodes.Places.Hold(nodes.ReplacementKey(w.Key), nil)
		needed, ok := r.nodes.Finder.RepairOnceGone(w.Key)
		lacks := func(set place.Assignment) bool { return nodes.CountOf(set.Nodes) > nominated[set.PodSet] }
		enough := !slices.ContainsFunc(needed.Gained, lacks)
		keeps = ok && enough && (nodes.SamePlaces(at, needed.Gained) ||
			r.nodes.Finder.FitsAt(asks, at, place.Planned))
	})
	return keeps
}

// nominateReplacement nominates places for the workload that leaving workloads use, and reports whether there are any.
func (r *repairPass) nominateReplacement(w *state.Workload) bool {
	if r.nodes.Departing == 0 {
		return false
	}
	found, ok := r.nodes.Finder.RepairOnceGone(w.Key)
	if ok {
		r.nodes.HoldReplacement(w, found.Gained)
	}
	return ok
}

// preemptForReplacement evicts workloads, and nominates the places that they use. It reports whether there are any
// whose eviction helps.
func (r *repairPass) preemptForReplacement(w *state.Workload) bool {
	found, gained := r.engine.evaluator.VictimsForReplacement(w)
	if len(found.Victims)+len(found.Yields) == 0 {
		return false
	}
	r.pass.budget -= len(found.Victims) + len(found.Yields)
	before, lost := len(r.pass.decisions), r.nodes.Places.InvalidNodes(w.Key)
	for _, v := range found.Victims {
		r.pass.evictions.evict(v, w)
	}
	for _, y := range found.Yields {
		r.pass.resize(y.Workload, y.At, y.Given, w.Key)
	}
	for i := range r.pass.decisions[before:] {
		r.pass.decisions[before+i].Lost = lost
	}
	r.nodes.HoldReplacement(w, gained)
	return true
}
