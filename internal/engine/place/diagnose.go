package place

import (
	"slices"
)

// Diagnose explains why the asks have no places now.
func (m *Map) Diagnose(asks []Ask) Diagnosis {
	f, wrong := m.read(asks, Now)
	if wrong != nil {
		return Diagnosis{PodSets: []AskDiagnosis{{Shortfall: *wrong}}}
	}
	if m.search(f) {
		m.close(f)
		return Diagnosis{Fits: true}
	}
	var out Diagnosis
	m.takeBack(f, 0)
	alone := true
	byAsk := slices.Clone(f.wants)
	slices.SortFunc(byAsk, func(a, b *want) int { return a.index - b.index })
	for _, w := range byAsk {
		m.count(w, f.on)
		alone = m.fitsAlone(f, w) && alone
		out.PodSets = append(out.PodSets, m.diagnose(f, w))
	}
	for i := range out.PodSets {
		out.PodSets[i].Together = alone && len(out.PodSets) > 1
	}
	m.close(f)
	out.Relaxation = m.relax(asks, out.PodSets)
	return out
}

// diagnose explains the situation of one ask alone.
func (m *Map) diagnose(f *search, w *want) AskDiagnosis {
	out := AskDiagnosis{Shortfall: *m.shortfallOf(f, w)}
	d, ok := m.best(f, w)
	if !ok {
		return out
	}
	fits := int32(min(w.holdable(d), cap32))
	out.Best = &Domain{Level: w.layout.levelAt(w.layout.depth(d)), Values: w.layout.path(d), Fits: fits, Lacks: w.Count - fits, Resource: m.scarce(f, w, d)}
	if slot, ok := slotOf(d); ok {
		out.Best.Values = append(out.Best.Values, m.slots[slot].host.name)
	}
	return out
}

// scarce returns the resource that most nodes of a domain run out of first. It returns "" if more of any
// resource would not let more pods fit there, because parts are exclusive or each pod uses a host port.
func (m *Map) scarce(f *search, w *want, d int32) string {
	counts := map[int32]int{}
	most := int32(-1)
	name := func(resource int32) string { return m.resourceName(resource, w.PerPod) }
	m.walk(w.layout, d, w.layout.bottom(), func(d int32) {
		slot, _ := slotOf(d)
		if why := w.tally.why[slot]; why != none && !m.refusals.ofResource(why) {
			return
		}
		_, bound := m.free.fit(w.takes, w.tally.ledger, slot)
		if bound < 0 {
			return
		}
		counts[bound]++
		if most < 0 || counts[bound] > counts[most] || counts[bound] == counts[most] && name(bound) < name(most) {
			most = bound
		}
	})
	if most < 0 || !m.limitedByResources(f, w, d) {
		return ""
	}
	return name(most)
}

// limitedByResources reports whether more of the pods would fit in a domain if its nodes had more of every
// resource.
func (m *Map) limitedByResources(f *search, w *want, d int32) bool {
	if w.podsOnly() && len(w.HostPorts) == 0 {
		return true
	}
	ask := *w.Ask
	ask.PerPod = nil
	free, wrong := m.want(&ask, w.index, w.layout.extra)
	if wrong != "" {
		return false
	}
	free.bounding, free.on = w.bounding, w.on
	m.count(free, f.on)
	m.measure(free, d)
	return free.holdable(d) > w.holdable(d)
}
