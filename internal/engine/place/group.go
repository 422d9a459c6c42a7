package place

import (
	"cmp"
	"slices"
)

// askGroup holds the asks that get one domain together: those with the same Group, or a single ask.
type askGroup struct {
	wants []*want
	// depth is that of the domain. hasLevel is set if a level is asked for at all, mandatory if the domain
	// must not be wider.
	depth               int32
	mandatory, hasLevel bool
	within              int32
}

// disagrees returns an ask that cannot share a domain with those before it, and why; nil if there is none.
// Jobs of the kinds that Muster knows were checked before they were queued; Workloads of other controllers
// are checked here for the first time.
func (a *askGroup) disagrees() (*want, string) {
	var first *want // the first one with a level
	for _, w := range a.wants {
		switch {
		case w.layout != a.layout():
			return w, "are of different topologies"
		case w.Level == "":
		case first == nil:
			first = w
		case w.Level != first.Level || w.Mandatory != first.Mandatory:
			return w, "must ask for the same level, all of them as required or all as preferred"
		}
	}
	return nil, ""
}

// candidate is a domain that may hold a group, and the number of pods of the first ask that fit in it.
type candidate struct {
	domain int32
	pods   int64
}

// placeGroup finds places for all asks of the group and charges them. If it finds none it charges nothing.
//
// A single ask gets the narrowest domain that holds it, whatever its level: so pods fill nodes that are in
// use before they break into an empty rack.
func (m *Map) placeGroup(f *search, p *askGroup) bool {
	m.recountGroup(f, p)
	widest, depth := p.layout().depth(p.within), p.depth
	if p.hasLevel && p.mandatory {
		widest = max(widest, p.depth)
	}
	if len(p.wants) == 1 {
		depth = p.layout().bottom()
	} else if !p.hasLevel {
		depth = widest
	}
	if slices.ContainsFunc(p.wants, (*want).needsShares) {
		return m.placeShared(f, p, widest)
	}
	for ; depth >= widest; depth-- {
		for _, s := range m.candidates(p, depth) {
			if m.placeIn(f, p, s.domain) {
				return true
			}
		}
	}
	return false
}

func (a *askGroup) layout() *layout { return a.wants[0].layout }

// recountGroup updates the counts of all domains.
func (m *Map) recountGroup(f *search, p *askGroup) {
	for _, w := range p.wants {
		m.count(w, f.on)
		m.measure(w, p.within)
	}
}

// candidates returns the domains of a depth that hold each ask of the group, those with the fewest free
// places first and equal ones by name: so the last ones stay free, and whole, for longest. For a single
// ask, which fits in the first one if in any, it returns only that.
func (m *Map) candidates(p *askGroup, depth int32) []candidate {
	if depth == p.layout().bottom() && len(p.wants) == 1 && p.wants[0].podsOnly() {
		return m.tightestNode(p)
	}
	var out []candidate
	m.walk(p.layout(), p.within, depth, func(d int32) {
		pods, ok := p.fits(d)
		switch {
		case !ok:
		case len(p.wants) > 1 || len(out) == 0:
			out = append(out, candidate{d, pods})
		case pods < out[0].pods:
			out[0] = candidate{d, pods}
		}
	})
	slices.SortStableFunc(out, func(a, b candidate) int { return cmp.Compare(a.pods, b.pods) })
	return out
}

// tightestNode returns the node that an ask for single pods would fill best. It skips most domains by
// their sums and extremes, without looking at their nodes.
func (m *Map) tightestNode(p *askGroup) []candidate {
	w := p.wants[0]
	if d := p.within; d < outside {
		if w.pods(d) < int64(w.Count) {
			return nil
		}
		return []candidate{{d, w.pods(d)}}
	}
	best, fewest := candidate{domain: outside}, int32(0)
	var visit func(d int32)
	visit = func(d int32) {
		if w.tally.sums[d] < int64(w.Count) {
			return
		}
		children := m.children(w.layout, d)
		if w.layout.domains[d].depth < w.layout.lowest() {
			for _, child := range children {
				visit(child)
			}
			return
		}
		e := w.tally.extremesOf(d)
		if e.most < w.Count || best.domain != outside && e.fewest >= fewest {
			return
		}
		at := outside
		for _, child := range children {
			fits := w.tally.fits[nodeAt(child)]
			if fits >= w.Count && (at == outside || fits < w.tally.fits[nodeAt(at)]) {
				if at = child; fits == e.fewest {
					break
				}
			}
		}
		s := candidate{at, w.pods(at)}
		if best.domain == outside || s.pods < best.pods {
			best, fewest = s, int32(s.pods)
		}
	}
	visit(p.within)
	if best.domain == outside {
		return nil
	}
	return []candidate{best}
}

// walk visits the domains of a depth within d, sorted by name.
func (m *Map) walk(l *layout, d, depth int32, visit func(d int32)) {
	if l.depth(d) >= depth {
		visit(d)
		return
	}
	for _, child := range m.children(l, d) {
		m.walk(l, child, depth, visit)
	}
}

// fits reports whether each ask fits in a domain alone, and how many pods of the first one fit.
func (a *askGroup) fits(d int32) (pods int64, ok bool) {
	for _, w := range a.wants {
		full, more, ok := w.need(w.layout.depth(d))
		if !ok || w.pods(d) == 0 || !w.holdsOf(d).has(full, more) || !w.allowedAbove(d) { // measure skips domains without free places
			return 0, false
		}
	}
	return a.wants[0].pods(d), true
}

// hasRoom reports whether a domain that may hold all of an ask has enough places.
func (m *Map) hasRoom(f *search, w *want) bool {
	p := f.groupOf(w)
	m.measure(w, p.within)
	if !p.hasLevel || !p.mandatory {
		full, more, ok := w.need(p.layout().depth(p.within))
		return ok && w.holdsOf(p.within).has(full, more) && w.allowedAbove(p.within)
	}
	alone := askGroup{wants: []*want{w}, depth: p.depth, mandatory: true, hasLevel: true, within: p.within}
	return len(m.candidates(&alone, p.depth)) > 0
}

// placeIn finds places for all asks of the group in one domain and charges them.
func (m *Map) placeIn(f *search, p *askGroup, d int32) bool {
	charged := len(f.charged)
	for _, w := range p.wants {
		m.count(w, f.on) // the asks before it have been charged
		m.measure(w, d)
		full, more, ok := w.need(w.layout.depth(d))
		if !ok || !w.holdsOf(d).has(full, more) || !w.allowedAbove(d) {
			m.takeBack(f, charged)
			return false
		}
		var nodes []slotCount
		emit := func(slot, pods int32) { nodes = append(nodes, slotCount{slot, pods}) }
		if !w.needsShares() {
			m.spread(w, d, full, more, emit)
		} else if len(w.layers) > 1 || w.exclusiveDepth >= 0 || !m.spreadShared(w, d, int64(w.Count), emit) {
			m.takeBack(f, charged)
			return false
		}
		m.chargeAsk(f, w, nodes)
	}
	return true
}
