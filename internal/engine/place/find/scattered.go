package find

import (
	"math"
	"slices"

	"github.com/musterhq/muster/internal/engine/order"
	"github.com/musterhq/muster/internal/engine/place"
)

// scattered reports whether a workload has no pods, present or ended, and its places are no longer in one domain as it
// requires, because node labels have changed. Pods that run are not moved.
func (f *Finder) scattered(workload order.Key, h *place.Holding) bool {
	if !slices.ContainsFunc(h.PodSets, func(set place.HeldPodSet) bool { return needsOneDomain(&set.Ask) }) ||
		h.Leaving || h.Nominated || f.places.HasPods(workload) || isHuge(h) {
		return false
	}
	for i := range h.PodSets {
		if set := &h.PodSets[i]; set.Ended > 0 ||
			f.places.Ended(place.PodSetKey{Workload: workload, PodSet: set.Ask.PodSet}) > 0 {
			return false
		}
	}
	f.boundLayouts()
	asks := make([]place.Ask, len(h.PodSets))
	for i := range h.PodSets {
		asks[i] = h.PodSets[i].Ask
	}
	groups := map[string]domainAt{}
	for i, extra := range f.extras(asks) {
		if f.podSetScattered(&h.PodSets[i], extra, groups) {
			return true
		}
	}
	return false
}

// needsOneDomain reports whether any of the pods must share a domain.
func needsOneDomain(a *place.Ask) bool {
	return a.Level != "" && a.Mandatory || len(a.Slices) > 0 || a.ExclusiveKey != ""
}

// domainAt is a domain of a layout with its depth.
type domainAt struct {
	layout *place.Layout
	depth  int32
	domain int32
}

// podSetScattered reports whether places that must be in one domain are not: all places of the pod set and
// its group, or the places of a slice. groups holds the domain of each group so far.
func (f *Finder) podSetScattered(set *place.HeldPodSet, extra string, groups map[string]domainAt) bool {
	a := &set.Ask
	if !needsOneDomain(a) {
		return false
	}
	w, wrong := f.resolve(a, 0, extra)
	if wrong != "" {
		return false // the ask was made for an earlier topology
	}
	parts := w.layers[:len(w.layers)-1] // the last layer is single pods
	for _, part := range parts {
		if _, apart := f.apart(w.layout, part, set.Nodes); apart {
			return true
		}
	}
	if a.Level == "" || !a.Mandatory {
		return false
	}
	first, apart := f.apart(w.layout, layer{w.depth, math.MaxInt32}, set.Nodes)
	if apart || first == place.Outside || a.Group == "" {
		return apart
	}
	is := domainAt{w.layout, w.depth, first}
	other, known := groups[a.Group]
	groups[a.Group] = is
	return known && other.layout == is.layout && other.depth == is.depth && other.domain != is.domain
}

// apart reports whether any part of part.size ranks is in several domains of the depth, or on a node
// outside of the layout. first is the domain of the first rank. Nodes that are gone are skipped.
func (f *Finder) apart(l *place.Layout, part layer, nodes []place.NodeCount) (first int32, apart bool) {
	rank, open, at := int64(0), int64(-1), place.Outside // the current part and its domain
	first = place.Outside
	for _, on := range nodes {
		slot, named := f.places.Nodes.SlotOf(on.Node)
		if on.Count <= 0 || named != 1 {
			rank += int64(max(0, on.Count))
			continue
		}
		if l.DomainOf(slot) == place.Outside {
			return first, true
		}
		here := l.Above(place.NodeAt(slot), part.depth)
		if first == place.Outside {
			first = here
		}
		if rank/int64(part.size) == open && here != at {
			return first, true
		}
		rank += int64(on.Count)
		open, at = (rank-1)/int64(part.size), here
	}
	return first, false
}
