package engine

import (
	"slices"

	"github.com/musterhq/muster/internal/engine/place"
	"github.com/musterhq/muster/internal/engine/reason"
	"github.com/musterhq/muster/internal/engine/state"
)

// reviewReplacements queues the repair of the workloads that wait for other places, if these may have changed.
func (r *repairPass) reviewReplacements() {
	for _, w := range r.pass.engine.nodes.replacing {
		if r.pass.engine.nodes.mayBeReplaced(w) {
			r.pass.engine.nodes.toRepair.Push(w.Rank())
		}
	}
}

// mayBeReplaced reports whether places have changed since the workload waits for other ones, or nothing is leaving any
// more.
func (n *nodes) mayBeReplaced(w *state.Workload) bool {
	return w.Replacement.CheckedAt != n.placesVersion || n.departing == 0
}

// hasReplacementToReview reports whether reviewReplacements has something to do. A pass may take back a promise to another
// workload after it has looked at the repairs.
func (n *nodes) hasReplacementToReview() bool {
	for _, w := range n.replacing {
		if n.mayBeReplaced(w) {
			return true
		}
	}
	return false
}

// awaitReplacement has a workload keep the pods that have places, and wait for other places for the rest, which leaving
// workloads still use. If need be it evicts workloads for them, by the rules by which it could evict them if it were
// waiting itself. It reports whether there are such places.
//
// It ends: while no place changes it is not called again, places promised once are kept for as long as they would be
// free, and each search for others evicts workloads that it precedes from then on.
func (r *repairPass) awaitReplacement(w *state.Workload) bool {
	if r.pass.engine.nodes.refusedItsPods(w) {
		r.pass.engine.nodes.dropReplacement(w)
		return false // what kube-scheduler refuses on one node it may refuse on each: others would be evicted in vain
	}
	if !r.keepsReplacement(w) {
		r.pass.engine.nodes.dropReplacement(w)
		if !r.promiseReplacement(w) && !r.preemptForReplacement(w) {
			return false
		}
	}
	w.Replacement.CheckedAt = r.pass.engine.nodes.placesVersion
	return true
}

// refusedItsPods reports whether kube-scheduler refused the workload's pods on any node that its places are lost on. It
// refuses the pods on a node that is gone or failed for that reason alone, which says nothing of other nodes.
func (n *nodes) refusedItsPods(w *state.Workload) bool {
	return slices.ContainsFunc(n.places.InvalidNodes(w.Key), func(node string) bool {
		if n.places.IsLost(node) {
			return false
		}
		return slices.Contains(w.Avoid.Nodes, node) || slices.ContainsFunc(w.Avoid.Limits, func(l place.NodeCount) bool { return l.Node == node })
	})
}

// keepsReplacement reports whether the promised places are as many as the workload needs, and will still be free. A place
// that it lost to a pod that is leaving needs none: it is its own again once that pod is gone. Where all its pods move, as
// those of a slice do, some of the promised places may be its own: these are free for it, although not beside it.
func (r *repairPass) keepsReplacement(w *state.Workload) (keeps bool) {
	if w.Replacement == nil || r.pass.engine.nodes.departing == 0 {
		return false
	}
	promised := map[string]int32{}
	var asks []place.Ask
	var at []place.Assignment
	for _, set := range w.Replacement.Promised.PodSets {
		promised[set.Ask.PodSet] += countOf(set.Nodes)
		asks, at = append(asks, set.Ask), append(at, place.Assignment{PodSet: set.Ask.PodSet, Nodes: set.Nodes})
	}
	r.pass.engine.nodes.places.Try(func() {
		r.pass.engine.nodes.places.Hold(replacementKey(w.Key), nil)
		needed, ok := r.pass.engine.nodes.finder.RepairOnceGone(w.Key)
		lacks := func(set place.Assignment) bool { return countOf(set.Nodes) > promised[set.PodSet] }
		enough := !slices.ContainsFunc(needed.Gained, lacks)
		keeps = ok && enough && (samePlaces(at, needed.Gained) || r.pass.engine.nodes.finder.FitsAt(asks, at, place.Planned))
	})
	return keeps
}

func samePlaces(a, b []place.Assignment) bool {
	return slices.EqualFunc(a, b, func(a, b place.Assignment) bool { return a.PodSet == b.PodSet && slices.Equal(a.Nodes, b.Nodes) })
}

// promiseReplacement promises the workload places that leaving workloads use, and reports whether there are any.
func (r *repairPass) promiseReplacement(w *state.Workload) bool {
	if r.pass.engine.nodes.departing == 0 {
		return false
	}
	found, ok := r.pass.engine.nodes.finder.RepairOnceGone(w.Key)
	if ok {
		r.pass.engine.nodes.holdReplacement(w, found.Gained)
	}
	return ok
}

// preemptForReplacement evicts workloads, and promises the places that they use. It reports whether there are any whose
// eviction helps.
func (r *repairPass) preemptForReplacement(w *state.Workload) bool {
	found, gained := r.pass.engine.evaluator.victimsForReplacement(w)
	if len(found.victims)+len(found.yields) == 0 {
		return false
	}
	r.pass.budget -= len(found.victims) + len(found.yields)
	before, lost := len(r.pass.decisions), r.pass.engine.nodes.places.InvalidNodes(w.Key)
	for _, v := range found.victims {
		r.pass.evictions.evict(v, w)
	}
	for _, y := range found.yields {
		r.pass.resize(y.Workload, y.At, y.Given, w.Key)
	}
	for i := range r.pass.decisions[before:] {
		r.pass.decisions[before+i].Lost = lost
	}
	r.pass.engine.nodes.holdReplacement(w, gained)
	return true
}

// holdReplacement charges the places to the planned ledger.
func (n *nodes) holdReplacement(w *state.Workload, gained []place.Assignment) {
	holding := &place.Holding{Nominated: true}
	for i, ask := range n.replacementAsks(w, gained) {
		holding.PodSets = append(holding.PodSets, place.HeldPodSet{Ask: ask, Nodes: gained[i].Nodes})
	}
	w.Replacement = &state.Replacement{Of: w.Held, Promised: holding}
	n.replacing[w.Key] = w
	n.places.Hold(replacementKey(w.Key), holding)
	n.placesVersion++
}

// explainReplacement returns for what a workload waits that lost places, nil if it lost none or waits for nothing. It
// finds the places anew: an engine that only explains has promised none.
func (n *nodes) explainReplacement(w *state.Workload) (out *reason.Replacing) {
	if w.Held == nil || w.Leaving() {
		return nil
	}
	var lost int32
	for _, set := range n.places.InvalidPlaces(w.Key) {
		lost += countOf(set.Nodes)
	}
	if lost == 0 {
		return nil
	}
	n.places.Try(func() {
		n.places.Hold(replacementKey(w.Key), nil)
		if found, ok := n.finder.RepairOnceGone(w.Key); ok {
			out = &reason.Replacing{Pods: lost, Lost: n.places.InvalidNodes(w.Key), Awaits: n.leavingFrom(found.Gained)}
		}
	})
	return out
}

// leavingFrom returns the workloads that are leaving any of the nodes, or have pods left there, by key.
func (n *nodes) leavingFrom(places []place.Assignment) (out []reason.Name) {
	for _, w := range state.SortedByKey(n.workloads) {
		if !w.Placed.Leaving {
			continue
		}
		there := func(at place.NodeCount) bool { return n.places.PodsOn(w.Key, at.Node) > 0 }
		if slices.ContainsFunc(places, func(set place.Assignment) bool { return slices.ContainsFunc(set.Nodes, there) }) {
			out = append(out, reason.NameOf(w.Key))
		}
	}
	return out
}
