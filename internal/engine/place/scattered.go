package place

import "slices"

// scattered reports whether the places of a workload are no longer in one domain as it requires, because
// node labels have changed, and no pod of it is present or has ended: pods that run are not moved for it.
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
	for i, extra := range m.extras(asks) {
		if m.podSetScattered(&h.PodSets[i], extra, groups) {
			return true
		}
	}
	return false
}

// needsOneDomain reports whether any of the pods must share a domain.
func (a *Ask) needsOneDomain() bool {
	return a.Level != "" && a.Mandatory || len(a.Slices) > 0 || a.ExclusiveKey != ""
}

// domainAt is a domain of a layout with its depth.
type domainAt struct {
	layout *layout
	depth  int32
	domain int32
}

// podSetScattered reports whether places that must be in one domain are not: all places of the pod set and
// its group, or those of a slice. groups holds the domain of each group so far.
func (m *Map) podSetScattered(set *HeldPodSet, extra string, groups map[string]domainAt) bool {
	a := &set.Ask
	if !a.needsOneDomain() {
		return false
	}
	w, wrong := m.want(a, 0, extra)
	if wrong != "" {
		return false // the ask was made for an earlier topology
	}
	parts := w.layers[:len(w.layers)-1] // the last layer is single pods
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

// apart reports whether any part of part.size ranks is in several domains of the depth, or on a node
// outside of the layout. first is the domain of the first rank. Nodes that are gone are skipped.
func (m *Map) apart(l *layout, part layer, nodes []NodeCount) (first int32, apart bool) {
	rank, open, at := int64(0), int64(-1), outside // the current part and its domain
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
