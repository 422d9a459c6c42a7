package nodes

import (
	"slices"

	"github.com/musterhq/muster/internal/engine/flavor"
	"github.com/musterhq/muster/internal/engine/order"
	"github.com/musterhq/muster/internal/engine/place"
	"github.com/musterhq/muster/internal/engine/reason"
	"github.com/musterhq/muster/internal/engine/state"
)

// MayBeReplaced reports whether places have changed since the workload waits for other ones, or nothing is leaving any
// more.
func (n *Nodes) MayBeReplaced(w *state.Workload) bool {
	return w.Replacement.CheckedAt != n.PlacesVersion || n.Departing == 0
}

// HasReplacementToReview reports whether reviewReplacements has something to do. A pass may take back a nomination for
// another workload after it has looked at the repairs.
func (n *Nodes) HasReplacementToReview() bool {
	for _, w := range n.Replacing {
		if n.MayBeReplaced(w) {
			return true
		}
	}
	return false
}

// RefusedItsPods reports whether kube-scheduler refused the workload's pods on any node that its places are lost on. It
// refuses the pods on a node that is gone or failed for that reason alone, which says nothing of other nodes.
func (n *Nodes) RefusedItsPods(w *state.Workload) bool {
	return slices.ContainsFunc(n.Places.InvalidNodes(w.Key), func(node string) bool {
		if n.Places.IsLost(node) {
			return false
		}
		return slices.Contains(w.Avoid.Nodes, node) ||
			slices.ContainsFunc(w.Avoid.Limits, func(l place.NodeCount) bool { return l.Node == node })
	})
}

// HoldReplacement charges the places to the planned ledger.
func (n *Nodes) HoldReplacement(w *state.Workload, gained []place.Assignment) {
	holding := &place.Holding{Nominated: true}
	for i, ask := range n.ReplacementAsks(w, gained) {
		holding.PodSets = append(holding.PodSets, place.HeldPodSet{Ask: ask, Nodes: gained[i].Nodes})
	}
	w.Replacement = &state.Replacement{Of: w.Held, Nominated: holding}
	n.Replacing[w.Key] = w
	n.Places.Hold(ReplacementKey(w.Key), holding)
	n.PlacesVersion++
}

// ExplainReplacement returns for what a workload waits that lost places, nil if it lost none or waits for nothing. It
// finds the places anew: an engine that only explains has nominated none.
func (n *Nodes) ExplainReplacement(w *state.Workload) (out *reason.Replacing) {
	if w.Held == nil || w.Leaving() {
		return nil
	}
	var lost int32
	for _, set := range n.Places.InvalidPlaces(w.Key) {
		lost += CountOf(set.Nodes)
	}
	if lost == 0 {
		return nil
	}
	n.Places.Try(func() {
		n.Places.Hold(ReplacementKey(w.Key), nil)
		if found, ok := n.Finder.RepairOnceGone(w.Key); ok {
			out = &reason.Replacing{Pods: lost, Lost: n.Places.InvalidNodes(w.Key), Awaits: n.leavingFrom(found.Gained)}
		}
	})
	return out
}

// leavingFrom returns the workloads that are leaving any of the nodes, or have pods left there, by key.
func (n *Nodes) leavingFrom(places []place.Assignment) (out []reason.Name) {
	for _, w := range state.SortedByKey(n.workloads) {
		if !w.Placed.Leaving {
			continue
		}
		there := func(at place.NodeCount) bool { return n.Places.PodsOn(w.Key, at.Node) > 0 }
		if slices.ContainsFunc(places, func(set place.Assignment) bool { return slices.ContainsFunc(set.Nodes, there) }) {
			out = append(out, reason.Name(w.Key))
		}
	}
	return out
}

// ReplacementAsks returns the requests for the places that the workload gains, in the same order.
func (n *Nodes) ReplacementAsks(w *state.Workload, gained []place.Assignment) []place.Ask {
	var out []place.Ask
	for _, set := range gained {
		at := slices.IndexFunc(w.Held.PodSets, func(a flavor.Assignment) bool { return a.PodSet == set.PodSet })
		ask, _ := n.AskOf(w.PodSet(set.PodSet), &w.Held.PodSets[at], &w.Avoid)
		ask.Count = CountOf(set.Nodes)
		ask.Level, ask.Mandatory, ask.Slices, ask.Group = "", false, nil, "" // the search has seen to that
		out = append(out, ask)
	}
	return out
}

// DropReplacement takes back what was nominated, if anything was.
func (n *Nodes) DropReplacement(w *state.Workload) {
	if w.Replacement == nil {
		return
	}
	w.Replacement = nil
	delete(n.Replacing, w.Key)
	n.Places.Hold(ReplacementKey(w.Key), nil)
	n.PlacesVersion++
}

// ReplacementKey is the key under which place.Map has the places nominated in place of those that the workload lost. No
// workload has such a key: names have no slash.
func ReplacementKey(of order.Key) order.Key {
	return order.Key{Namespace: of.Namespace, Name: of.Name + "/replacement"}
}

// CountOf returns the number of pods at the places.
func CountOf(places []place.NodeCount) (sum int32) {
	for _, at := range places {
		sum += at.Count
	}
	return sum
}

// SamePlaces reports whether both are the same nodes for the same pod sets.
func SamePlaces(a, b []place.Assignment) bool {
	return slices.EqualFunc(a, b,
		func(a, b place.Assignment) bool { return a.PodSet == b.PodSet && slices.Equal(a.Nodes, b.Nodes) })
}
