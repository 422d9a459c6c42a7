package find

import "slices"

// placeGroup finds places for all asks of the group and charges them. If it finds none it charges nothing.
//
// A single ask gets the narrowest domain that holds it, whatever its level: so pods fill nodes that are in
// use before they break into an empty rack.
func (s *search) placeGroup(p *askGroup) bool {
	s.recountGroup(p)
	widest, depth := p.layout().Depth(p.within), p.depth
	if p.hasLevel && p.mandatory {
		widest = max(widest, p.depth)
	}
	if len(p.wants) == 1 {
		depth = p.layout().Bottom()
	} else if !p.hasLevel {
		depth = widest
	}
	if slices.ContainsFunc(p.wants, (*want).needsShares) {
		return s.placeShared(p, widest)
	}
	for ; depth >= widest; depth-- {
		for _, c := range p.candidates(depth) {
			if s.placeIn(p, c.domain) {
				return true
			}
		}
	}
	return false
}

// recountGroup updates the counts of all domains.
func (s *search) recountGroup(p *askGroup) {
	for _, w := range p.wants {
		s.count(w)
		w.measure(p.within)
	}
}

// hasHeadroom reports whether a domain that may hold all of an ask has enough places.
func (s *search) hasHeadroom(w *want) bool {
	p := s.groupOf(w)
	w.measure(p.within)
	if !p.hasLevel || !p.mandatory {
		full, more, ok := w.need(p.layout().Depth(p.within))
		return ok && w.holdsOf(p.within).has(full, more) && w.allowedAbove(p.within)
	}
	alone := askGroup{wants: []*want{w}, depth: p.depth, mandatory: true, hasLevel: true, within: p.within}
	return len(alone.candidates(p.depth)) > 0
}

// placeIn finds places for all asks of the group in one domain and charges them.
func (s *search) placeIn(p *askGroup, d int32) bool {
	charged := len(s.charged)
	for _, w := range p.wants {
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

// placeShared finds places for a group some of whose domains must get a share of the pods. It tries every domain that may
// hold the group.
func (s *search) placeShared(p *askGroup, depth int32) bool {
	found := false
	p.layout().Walk(p.within, depth, func(d int32) { found = found || s.placeIn(p, d) })
	return found
}
