package find

import "slices"

// placeGroup finds places for all asks of the group and charges them. If it finds none it charges nothing.
//
// A single ask gets the narrowest domain that holds it, whatever its level: so pods fill nodes that are in
// use before they break into an empty rack.
func (s *search) placeGroup(g *askGroup) bool {
	s.recountGroup(g)
	widest, depth := g.widest(), g.depth
	if len(g.wants) == 1 {
		depth = g.layout().Bottom()
	} else if !g.hasLevel {
		depth = widest
	}
	if slices.ContainsFunc(g.wants, (*want).needsShares) {
		return s.placeShared(g, widest)
	}
	for ; depth >= widest; depth-- {
		for _, c := range g.candidates(depth) {
			if s.placeIn(g, c.domain) {
				return true
			}
		}
	}
	return false
}

// recountGroup updates the counts of all domains.
func (s *search) recountGroup(g *askGroup) {
	for _, w := range g.wants {
		s.count(w)
		w.measure(g.within)
	}
}

// hasHeadroom reports whether a domain that may hold all of an ask has enough places.
func (s *search) hasHeadroom(w *want) bool {
	g := s.groupOf(w)
	w.measure(g.within)
	if !g.hasLevel || !g.mandatory {
		full, more, ok := w.need(g.layout().Depth(g.within))
		return ok && w.holdsOf(g.within).has(full, more) && w.allowedAbove(g.within)
	}
	alone := askGroup{wants: []*want{w}, depth: g.depth, mandatory: true, hasLevel: true, within: g.within}
	return len(alone.candidates(g.depth)) > 0
}

// placeIn finds places for all asks of the group in one domain and charges them.
func (s *search) placeIn(g *askGroup, d int32) bool {
	charged := len(s.charged)
	for _, w := range g.wants {
		s.count(w) // the asks before it have been charged
		w.measure(d)
		full, more, ok := w.need(w.layout.Depth(d))
		if !ok || !w.holdsOf(d).has(full, more) || !w.allowedAbove(d) {
			s.takeBack(charged)
			return false
		}
		var nodes []slotCount
		emit := func(slot, pods int32) { nodes = append(nodes, slotCount{slot, pods}) }
		if !w.needsShares() {
			w.spread(d, full, more, emit)
		} else if len(w.layers) > 1 || w.exclusiveDepth >= 0 || !w.spreadShared(d, int64(w.Count), emit) {
			s.takeBack(charged)
			return false
		}
		s.chargeAsk(w, nodes)
	}
	return true
}

// placeShared finds places for a group some of whose domains must get a share of the pods. It tries every domain that
// may hold the group.
func (s *search) placeShared(g *askGroup, depth int32) bool {
	found := false
	g.layout().Walk(g.within, depth, func(d int32) { found = found || s.placeIn(g, d) })
	return found
}
