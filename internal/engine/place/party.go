package place

import (
	"cmp"
	"slices"
)

// party is the asks that get one domain together: those of a group, or one alone.
type party struct {
	wants []*want
	// depth is that of the domain, mandatory whether it must not be wider, and matters
	// whether it is asked for at all.
	depth              int32
	mandatory, matters bool
	within             int32
}

// spot is a domain in which a party may be.
type spot struct {
	domain int32
	pods   int64
}

// settleParty looks for places for all of the party and charges them. Where it finds none it
// charges nothing.
func (m *Map) settleParty(f *finding, p *party) bool {
	m.recountParty(f, p)
	if !p.matters {
		return m.settleIn(f, p, p.within)
	}
	for depth := p.depth; ; depth-- {
		for _, s := range m.spots(p, depth) {
			if m.settleIn(f, p, s.domain) {
				return true
			}
		}
		if p.mandatory || depth <= p.layout().depth(p.within) {
			return false
		}
	}
}

func (p *party) layout() *layout { return p.wants[0].layout }

// recountParty brings what is known of all domains up to date.
func (m *Map) recountParty(f *finding, p *party) {
	for _, w := range p.wants {
		w.tally = m.tally(w.Ask, w.layout, f.on)
		m.measure(w, p.within)
	}
}

// spots are the domains of a depth that hold each ask of the party, the tightest
// first; just that one where no other ask can spoil it.
func (m *Map) spots(p *party, depth int32) []spot {
	var out []spot
	m.walk(p.layout(), p.within, depth, func(d int32) {
		pods, ok := p.fits(d)
		switch {
		case !ok:
		case len(p.wants) > 1 || len(out) == 0:
			out = append(out, spot{d, pods})
		case p.compare(spot{d, pods}, out[0]) < 0:
			out[0] = spot{d, pods}
		}
	})
	slices.SortStableFunc(out, p.compare)
	return out
}

// walk visits the domains of a depth within another, by name.
func (m *Map) walk(l *layout, d, depth int32, visit func(d int32)) {
	if l.depth(d) >= depth {
		visit(d)
		return
	}
	for _, child := range m.children(l, d) {
		m.walk(l, child, depth, visit)
	}
}

// fits reports whether each ask fits in a domain alone, and how many pods of the first
// there would be room for.
func (p *party) fits(d int32) (pods int64, ok bool) {
	for _, w := range p.wants {
		full, more, ok := w.need(w.layout.depth(d))
		if !ok || w.pods(d) == 0 || !w.holdsOf(d).has(full, more) { // of what is in an empty domain nothing was measured
			return 0, false
		}
	}
	return p.wants[0].pods(d), true
}

// compare puts the tighter spot first, and of equal ones that in the tighter domain
// above.
func (p *party) compare(a, b spot) int {
	w := p.wants[0]
	x, y := a.domain, b.domain
	by := cmp.Compare(a.pods, b.pods)
	for by == 0 && x != y {
		x, y = w.layout.parent(x), w.layout.parent(y)
		if x == outside || y == outside {
			break
		}
		by = cmp.Compare(w.pods(x), w.pods(y))
	}
	return by
}

// settleIn looks for places for all of the party in one domain and charges them.
func (m *Map) settleIn(f *finding, p *party, d int32) bool {
	charged := len(f.charged)
	for _, w := range p.wants {
		w.tally = m.tally(w.Ask, w.layout, f.on) // those before it are charged
		m.measure(w, d)
		full, more, ok := w.need(w.layout.depth(d))
		if !ok || !w.holdsOf(d).has(full, more) {
			m.takeBack(f, charged)
			return false
		}
		var nodes []slotCount
		m.spread(w, d, full, more, func(slot, pods int32) { nodes = append(nodes, slotCount{slot, pods}) })
		m.give(f, w, nodes)
	}
	return true
}
