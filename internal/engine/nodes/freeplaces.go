package nodes

import (
	"slices"

	"github.com/musterhq/muster/internal/engine/flavor"
	"github.com/musterhq/muster/internal/engine/place"
	"github.com/musterhq/muster/internal/engine/state"
)

// MoreOnNodes finds nodes for more pods of a held pod set. If the pod set must be in one domain, they are in that
// domain.
func (n *Nodes) MoreOnNodes(w *state.Workload, at int, pods int32, on place.Ledger) ([]place.NodeCount, bool) {
	a := &w.Held.PodSets[at]
	ask, ok := n.AskOf(w.PodSet(a.PodSet), a, &w.Avoid)
	if !ok || len(a.Places) == 0 {
		return nil, true // a matter of quota alone
	}
	ask.Count = pods
	if len(ask.Bounds)+len(ask.Limits) > 0 {
		ask.Kept = w.Held.Places()
	}
	if ask.Mandatory && !n.staysIn(&ask, a.Places[0].Node) {
		return nil, false
	}
	found, ok := n.Finder.TryFind([]place.Ask{ask}, on)
	if !ok {
		return nil, false
	}
	return found[0].Nodes, true
}

// staysIn restricts an ask to the domain of its level that contains the node, which the levels above distinguish from
// others of the same name. It reports whether the node has these labels.
func (n *Nodes) staysIn(ask *place.Ask, node string) bool {
	levels := n.Topologies[n.Flavors[ask.Flavor].Topology]
	ask.NodeSelector = writable(ask.NodeSelector)
	if at := slices.Index(levels, ask.Level); at >= 0 {
		levels = levels[:at]
	}
	for _, level := range append(slices.Clone(levels), ask.Level) {
		domain, known := n.Places.LabelOf(node, level)
		if !known {
			return false
		}
		ask.NodeSelector[level] = domain
	}
	return true
}

// FindNominated determines whether the nominated places, or equivalent ones, are available now or will be, and returns
// them.
func (n *Nodes) FindNominated(w *state.Workload) (out state.Verdict, found []place.Assignment) {
	given := w.Nomination.Given.PodSets
	asks := n.AsksOf(w.Shape.PodSets, given, w.Avoid)
	n.Places.Try(func() {
		n.HoldAs(w, n.LeftoverPods(w))
		out, found = n.placesOn(asks, PlacesOf(asks, given))
	})
	return out, found
}

// placesOn determines whether places are available now or will be, preferably those given.
func (n *Nodes) placesOn(asks []place.Ask, at []place.Assignment) (state.Verdict, []place.Assignment) {
	near := n.stillClose(asks, at)
	if near && n.Finder.FitsAt(asks, at, place.Now) {
		return state.Admissible, at
	}
	if found, ok := n.Finder.TryFind(asks, place.Now); ok {
		return state.Admissible, found
	}
	if near && n.Finder.FitsAt(asks, at, place.Planned) {
		return state.Nominable, at
	}
	if found, ok := n.Finder.TryFind(asks, place.Planned); ok {
		return state.Nominable, found
	}
	return state.Hopeless, nil
}

// stillClose reports whether the places are certain to be as close to each other as the asks require: node labels may
// have changed. For groups, slices and exclusive domains only a new search can tell.
func (n *Nodes) stillClose(asks []place.Ask, at []place.Assignment) bool {
	for i := range min(len(asks), len(at)) {
		ask := &asks[i]
		switch {
		case ask.Group != "", len(ask.Slices) > 0, ask.ExclusiveKey != "":
			return false
		case ask.Mandatory && !n.inOneDomain(ask, at[i].Nodes):
			return false
		}
	}
	return true
}

// inOneDomain reports whether the nodes are in one domain of the ask's level.
func (n *Nodes) inOneDomain(ask *place.Ask, nodes []place.NodeCount) bool {
	levels := n.Topologies[n.Flavors[ask.Flavor].Topology]
	for _, level := range levels[:slices.Index(levels, ask.Level)+1] {
		for _, at := range nodes {
			domain, _ := n.Places.LabelOf(nodes[0].Node, level)
			if is, known := n.Places.LabelOf(at.Node, level); !known || is != domain {
				return false
			}
		}
	}
	return true
}

// WithPlaces returns the assignments with the places that were found.
func WithPlaces(given []flavor.Assignment, found []place.Assignment) []flavor.Assignment {
	out := slices.Clone(given)
	for i := range out {
		out[i].Places = nil
		for _, f := range found {
			if f.PodSet == out[i].PodSet {
				out[i].Places = f.Nodes
			}
		}
	}
	return out
}

// PlacesOf returns the places of the assignments, in the order of the asks.
func PlacesOf(asks []place.Ask, given []flavor.Assignment) []place.Assignment {
	var out []place.Assignment
	for _, ask := range asks {
		for _, a := range given {
			if a.PodSet == ask.PodSet {
				out = append(out, place.Assignment{PodSet: a.PodSet, Nodes: a.Places})
			}
		}
	}
	return out
}

// AwaitsNodes reports whether the workload was admitted by quota alone, to nodes still to be provisioned, and not all
// of its pods have one.
func (n *Nodes) AwaitsNodes(w *state.Workload) bool {
	if w.Held == nil || w.Ready || w.Leaving() || w.Held.OnNodes() || int64(n.PodCounts[w.Key]) >= w.Held.Pods() {
		return false
	}
	for _, a := range w.Held.PodSets {
		if a.Count > 0 && n.Places.IsPlaced(n.PlacedBy(&a)) {
			return true
		}
	}
	return false
}
