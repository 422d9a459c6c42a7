package place

import (
	corev1 "k8s.io/api/core/v1"
)

// What kube-scheduler refuses on a node it often refuses on all that are near: a volume is of one zone. So where two nodes of a
// rack are no good, or a node in each of two racks of a block, places are looked for off all of it first; within it, though not on
// those nodes, only where there are none elsewhere.

// elsewhere looks for places off all that is near nodes that are avoided: off the widest domains first, then off the others. What
// is near may be all there is, and each node that is kept off costs every tally a look at it: so none is where the rest is too
// little. Nor is every way tried: that is for all there is.
func (m *Map) searchOffAvoided(f *search) bool {
	if len(f.avoided) < 2 {
		return false
	}
	refused := f.avoided
	n := f.areasAround(refused)
	for depth := range f.deepest() + 1 {
		if !n.any(depth) {
			continue
		}
		off := m.nodesNear(n, depth)
		if !m.enoughWithout(f, off) {
			continue
		}
		for slot, is := range off {
			if is {
				m.keepOff(f, m.slots[slot])
			}
		}
		if m.searchSparing(f) {
			return true
		}
		m.readmit(f.avoided[len(refused):])
		f.avoided = f.avoided[:len(refused)]
	}
	return false
}

// deepest is the depth of the domains right above nodes, of the ask that has the most levels.
func (f *search) deepest() (depth int32) {
	for _, w := range f.wants {
		depth = max(depth, w.layout.lowest())
	}
	return depth
}

// nearness is what is near nodes that are refused: domains of each layout, and zones, be they a level or not.
type avoidedAreas struct {
	domains map[*layout]map[int32]bool
	zones   map[string]bool
}

// nearTo is the domains and zones in which two are refused.
func (f *search) areasAround(refused []*node) avoidedAreas {
	n := avoidedAreas{domains: map[*layout]map[int32]bool{}, zones: map[string]bool{}}
	for _, w := range f.wants {
		if n.domains[w.layout] == nil {
			n.domains[w.layout] = w.layout.refusedTwice(refused)
		}
	}
	seen := map[string]bool{}
	for _, r := range refused {
		zone := r.Labels[corev1.LabelTopologyZone]
		if zone != "" && seen[zone] {
			n.zones[zone] = true
		}
		seen[zone] = true
	}
	return n
}

// any reports whether there is anything of that depth; depth 0 is that of zones.
func (n avoidedAreas) any(depth int32) bool {
	if depth == 0 && len(n.zones) > 0 {
		return true
	}
	for l, those := range n.domains {
		for d := range those {
			if l.depth(d) == depth {
				return true
			}
		}
	}
	return false
}

// nodesNear are the slots of the nodes that are in any of that depth or below, but for those that are avoided already.
func (m *Map) nodesNear(n avoidedAreas, depth int32) []bool {
	off := make([]bool, len(m.slots))
	for l, those := range n.domains {
		for slot, leaf := range l.leaf {
			if leaf == outside || off[slot] || m.slots[slot].avoided {
				continue
			}
			off[slot] = l.isIn(leaf, those, depth) || depth == 0 && n.zones[m.slots[slot].Labels[corev1.LabelTopologyZone]]
		}
	}
	return off
}

// leaveEnough reports whether, with those slots kept off too, each ask alone would have room for as many pods as it has where they
// may be together. That they are then placed is not certain; where they would not have it, that they are not is.
func (m *Map) enoughWithout(f *search, off []bool) bool {
	for _, w := range f.wants {
		p := f.groupOf(w)
		depth := p.layout().depth(p.within)
		if p.hasLevel && p.mandatory {
			depth = max(depth, p.depth)
		}
		m.count(w, f.on)
		enough := false
		m.walk(p.layout(), p.within, depth, func(d int32) { enough = enough || m.countWithout(w, d, off) >= int64(w.Count) })
		if !enough {
			return false
		}
	}
	return true
}

// roomBut is for how many pods there is room in a domain but for some slots. Of a domain that has no room for all of them as it is
// that is not counted.
func (m *Map) countWithout(w *want, d int32, off []bool) int64 {
	left := w.pods(d)
	if left < int64(w.Count) {
		return left
	}
	m.walk(w.layout, d, w.layout.bottom(), func(n int32) {
		if slot, _ := slotOf(n); off[slot] {
			left -= int64(w.tally.fits[slot])
		}
	})
	return left
}

// refusedTwice are the domains, but for the whole, of which two parts have nodes that are refused: two nodes of those right above
// nodes, two domains of others.
func (l *layout) refusedTwice(refused []*node) map[int32]bool {
	out, first := map[int32]bool{}, map[int32]int32{}
	for _, n := range refused {
		if n.slot < 0 || int(n.slot) >= len(l.leaf) || l.leaf[n.slot] == outside {
			continue
		}
		for part, d := nodeAt(n.slot), l.leaf[n.slot]; d > 0; part, d = d, l.parent(d) {
			if one, known := first[d]; !known {
				first[d] = part
			} else if one != part {
				out[d] = true
			}
		}
	}
	return out
}

// isIn reports whether a domain is one of those, or within one, at that depth or below.
func (l *layout) isIn(d int32, those map[int32]bool, depth int32) bool {
	for ; d > 0 && l.depth(d) >= depth; d = l.parent(d) {
		if those[d] {
			return true
		}
	}
	return false
}
