package place

import (
	corev1 "k8s.io/api/core/v1"
)

// What kube-scheduler refuses on a node it often refuses on all that are near: a volume is of one zone. So where two nodes of a
// rack are no good, or a node in each of two racks of a block, places are looked for off all of it first; within it, though not on
// those nodes, only where there are none elsewhere.

// elsewhere looks for places off all that is near nodes that are avoided: off the widest domains first, then off the others.
func (m *Map) elsewhere(f *finding) bool {
	if len(f.avoided) < 2 {
		return false
	}
	refused := f.avoided
	for depth := range f.deepest() + 1 {
		if !m.avoidFrom(f, refused, depth) {
			continue
		}
		if m.anywhere(f) {
			return true
		}
		m.takeBack(f, 0)
		m.readmit(f.avoided[len(refused):])
		f.avoided = f.avoided[:len(refused)]
	}
	return false
}

// deepest is the depth of the domains right above nodes, of the ask that has the most levels.
func (f *finding) deepest() (depth int32) {
	for _, w := range f.wants {
		depth = max(depth, w.layout.lowest())
	}
	return depth
}

// avoidFrom keeps the search off all nodes of domains of a depth and below in which two are refused; depth 0 is that of zones, be
// they a level or not. It reports whether any domain of that depth is among them: else it is as from the next one.
func (m *Map) avoidFrom(f *finding, refused []*node, depth int32) bool {
	any := false
	zones := map[string]int{}
	if depth == 0 {
		for _, n := range refused {
			zones[n.Labels[corev1.LabelTopologyZone]]++
		}
		delete(zones, "")
		for _, nodes := range zones {
			any = any || nodes > 1
		}
	}
	var avoided []*node
	seen := map[*layout]bool{}
	for _, w := range f.wants {
		if seen[w.layout] {
			continue
		}
		seen[w.layout] = true
		bad := w.layout.refusedTwice(refused)
		for d := range bad {
			any = any || w.layout.depth(d) == depth
		}
		for slot, leaf := range w.layout.leaf {
			n := m.slots[slot]
			if leaf != outside && !n.avoided && (zones[n.Labels[corev1.LabelTopologyZone]] > 1 || w.layout.isIn(leaf, bad, depth)) {
				avoided = append(avoided, n)
			}
		}
	}
	if !any {
		return false
	}
	for _, n := range avoided {
		m.keepOff(f, n)
	}
	return true
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
