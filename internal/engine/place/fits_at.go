package place

import "slices"

// FitsAt reports whether the asks still fit at exactly the given places, in time proportional to these. It
// does not check how near they are to each other: the caller does, if node labels may have changed since they
// were found.
func (m *Map) FitsAt(asks []Ask, given []Assignment, on Ledger) bool {
	f := &search{on: on}
	m.trial++
	defer func() {
		m.takeBackAll(f)
		m.trial--
	}()
	for i := range min(len(asks), len(given)) {
		if !m.fitsAskAt(f, &asks[i], given[i].Nodes) {
			return false
		}
	}
	return len(asks) == len(given)
}

// fitsAskAt charges the places of one ask node by node, as long as they fit.
func (m *Map) fitsAskAt(f *search, a *Ask, nodes []NodeCount) bool {
	if !m.Places(a.Flavor) {
		return false
	}
	m.knowExclusive(a.ExclusiveKey)
	shared := *a // pods of the same part do not exclude each other
	shared.ExclusiveKey = ""
	w := &want{Ask: &shared, takes: m.vector(a.PerPod)}
	t := &tally{ledger: f.on, takes: w.takes, ports: a.HostPorts, exclusive: a.ExclusiveKey,
		layout: m.layoutOf(m.flavors[a.Flavor].Topology, a.ExclusiveKey), filter: m.filter(a, a.filterKey())}
	size := max(1, a.Count)
	if len(a.Slices) > 0 {
		size = max(1, a.Slices[0].Size)
	}
	var part []slotCount
	left := size
	for _, at := range nodes {
		h := m.hosts[at.Node]
		if h == nil || len(h.nodes) != 1 || slices.Contains(a.Avoid, at.Node) {
			return false
		}
		slot := h.nodes[0].slot
		for at.Count > 0 {
			pods := min(at.Count, left)
			if fits, _ := m.fit(t, slot); fits < pods {
				return false
			}
			m.chargeOne(f, w, slotCount{slot, pods})
			part = append(part, slotCount{slot, pods})
			at.Count -= pods
			if left -= pods; left == 0 {
				m.chargeExclusivePart(f, a, part)
				part, left = nil, size
			}
		}
	}
	m.chargeExclusivePart(f, a, part)
	return true
}

// chargeExclusivePart makes the nodes of a part exclusive for the places that follow.
func (m *Map) chargeExclusivePart(f *search, a *Ask, part []slotCount) {
	if a.ExclusiveKey == "" {
		return
	}
	for _, at := range part {
		m.chargeOne(f, &want{Ask: &Ask{ExclusiveKey: a.ExclusiveKey}}, at)
	}
}

// chargeOne charges places on one node until takeBackAll.
func (m *Map) chargeOne(f *search, w *want, at slotCount) {
	nodes := []slotCount{at}
	m.chargeFound(f, w, nodes, 1)
	f.charged = append(f.charged, placement{w, nodes})
}

func (m *Map) takeBackAll(f *search) {
	for _, c := range f.charged {
		m.chargeFound(f, c.want, c.nodes, -1)
	}
}
