package place

import "slices"

// astray reports whether the places of a workload are not as near to each other any more as it requires, since labels of nodes have
// changed, and none of its pods is there, or has been: nobody is moved for it who runs.
func (m *Map) scattered(h *holder) bool {
	if !slices.ContainsFunc(h.PodSets, func(set HeldPodSet) bool { return set.Ask.needsOneDomain() }) ||
		h.Leaving || h.Promised || m.podsOf[h.key] != nil || h.size() > maxRepairPods {
		return false
	}
	for i := range h.PodSets {
		if set := &h.PodSets[i]; set.Ended > 0 || m.endedOf[PodSetKey{h.key, set.Ask.PodSet}] > 0 {
			return false
		}
	}
	m.boundLayouts()
	asks := make([]Ask, len(h.PodSets))
	for i := range h.PodSets {
		asks[i] = h.PodSets[i].Ask
	}
	groups := map[string]domainAt{}
	for i, extra := range extras(asks) {
		if m.podSetScattered(&h.PodSets[i], extra, groups) {
			return true
		}
	}
	return false
}

// together reports whether any of the pods must be in one domain.
func (a *Ask) needsOneDomain() bool {
	return a.Level != "" && a.Mandatory || len(a.Slices) > 0 || a.ExclusiveKey != ""
}

// domainOf is a domain of a layout, of a depth.
type domainAt struct {
	layout *layout
	depth  int32
	domain int32
}

// strays reports whether places of the pod set are apart that it requires in one domain: all of them, with those of its group, or
// those of each slice.
func (m *Map) podSetScattered(set *HeldPodSet, extra string, groups map[string]domainAt) bool {
	a := &set.Ask
	if !a.needsOneDomain() {
		return false
	}
	w, wrong := m.want(a, 0, extra)
	if wrong != "" {
		return false // by a topology of another time
	}
	parts := w.layers[:len(w.layers)-1] // the last ones are single pods
	for _, part := range parts {
		if _, apart := m.apart(w.layout, part, set.Nodes); apart {
			return true
		}
	}
	if a.Level == "" || !a.Mandatory {
		return false
	}
	first, apart := m.apart(w.layout, layer{w.depth, cap32}, set.Nodes)
	if apart || first == outside || a.Group == "" {
		return apart
	}
	is := domainAt{w.layout, w.depth, first}
	other, known := groups[a.Group]
	groups[a.Group] = is
	return known && other.layout == is.layout && other.depth == is.depth && other.domain != is.domain
}

// apart reports whether any part of so many ranks is in several domains of its depth, or on a node in none; first is the one of the
// first rank. Nodes that are gone say nothing.
func (m *Map) apart(l *layout, part layer, nodes []NodeCount) (first int32, apart bool) {
	rank, open, at := int64(0), int64(-1), outside // the part that ranks are looked at of, and where it is
	first = outside
	for _, on := range nodes {
		h := m.hosts[on.Node]
		if on.Count <= 0 || h == nil || len(h.nodes) != 1 {
			rank += int64(max(0, on.Count))
			continue
		}
		slot := h.nodes[0].slot
		if l.leaf[slot] == outside {
			return first, true
		}
		here := l.above(nodeAt(slot), part.depth)
		if first == outside {
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
