package place

import (
	corev1 "k8s.io/api/core/v1"
)

// If kube-scheduler refuses a node, it often refuses the nodes near it as well, for instance because a volume belongs to
// one zone. So if two nodes of a rack are avoided, or a node in each of two racks of a block, the whole rack or block is
// tried last, still without the avoided nodes.

// searchOffAvoided searches away from all areas with several avoided nodes: without the widest areas
// first, then without narrower ones. Such an area may be most of the cluster, and each node that is kept
// off must be recounted, so a step is skipped if too little would be left. It does not search
// exhaustively; that is left to the search of all nodes.
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

// deepest returns the depth of the domains right above nodes in the deepest layout.
func (s *search) deepest() (depth int32) {
	for _, w := range s.wants {
		depth = max(depth, w.layout.lowest())
	}
	return depth
}

// avoidedAreas holds the areas with several avoided nodes: domains of each layout, and zones whether or
// not they are a level.
type avoidedAreas struct {
	domains map[*layout]map[int32]bool
	zones   map[string]bool
}

// areasAround returns the domains and zones with at least two of the nodes.
func (s *search) areasAround(refused []*node) avoidedAreas {
	n := avoidedAreas{domains: map[*layout]map[int32]bool{}, zones: map[string]bool{}}
	for _, w := range s.wants {
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

// any reports whether there is an area at the depth. Zones have depth 0.
func (a avoidedAreas) any(depth int32) bool {
	if depth == 0 && len(a.zones) > 0 {
		return true
	}
	for l, those := range a.domains {
		for d := range those {
			if l.depth(d) == depth {
				return true
			}
		}
	}
	return false
}

// nodesNear returns, by slot, the nodes that are in an area at the depth or below and are not avoided yet.
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

// enoughWithout reports whether each ask would still have as many free places as pods, in a domain where
// they may all be, with the slots of off excluded. This is necessary for a placement, not sufficient.
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

// countWithout returns how many pods fit in a domain without the slots of off. If even the whole domain
// holds too few it returns that number.
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

// refusedTwice returns the domains, except the root, that have refused nodes in two different children.
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

// isIn reports whether a domain, or an ancestor of it at the depth or below, is in the set.
func (l *layout) isIn(d int32, those map[int32]bool, depth int32) bool {
	for ; d > 0 && l.depth(d) >= depth; d = l.parent(d) {
		if those[d] {
			return true
		}
	}
	return false
}
