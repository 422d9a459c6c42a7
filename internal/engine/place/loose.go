package place

// Pods that are loose have places, so that a gang starts only where there is room for all of it, and nobody who brings them there. What
// counts is where they are: for each of them that is elsewhere one of their places is nobody's, as that of a pod that has ended is.

// besides is how many pods of a pod set that is loose are where it has no place for them.
func (m *Map) besides(h *holder, podSet int) int32 {
	ask, c := &h.PodSets[podSet].Ask, m.crews[h.key]
	if !ask.Loose || c == nil {
		return 0
	}
	var out int32
	for at, count := range c.present {
		if at.podSet == ask.PodSet {
			out = addCount(out, count)
		}
	}
	for _, s := range h.podSets[podSet].seats {
		out -= min(s.count, c.here(ask.PodSet, s.host))
	}
	return out
}

// looseChanged has the places of a pod that came or went count by how many are elsewhere now.
func (m *Map) looseChanged(p *pod) {
	h := m.holders[p.workload]
	if h == nil {
		return
	}
	for i := range h.PodSets {
		if ask := &h.PodSets[i].Ask; ask.Loose && ask.PodSet == p.podSet {
			m.follow(h, i)
			if m.trial == 0 {
				m.ailing.Insert(p.workload)
			}
		}
	}
}
