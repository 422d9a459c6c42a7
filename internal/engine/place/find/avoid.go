package find

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/musterhq/muster/internal/engine/place"
)

// If kube-scheduler refuses a node, it often refuses the nodes near it as well, for instance because a volume belongs
// to one zone. So if two nodes of a rack are avoided, or a node in each of two racks of a block, the whole rack or
// block is tried last, still without the avoided nodes.

// searchOffAvoided searches away from all areas with several avoided nodes: without the widest areas
// first, then without narrower ones. Such an area may be most of the cluster, and each node that is kept
// off must be recounted, so a step is skipped if too little would be left. It does not search
// exhaustively; that is left to the search of all nodes.
func (s *search) searchOffAvoided() bool {
	if len(s.avoided) < 2 {
		return false
	}
	refused := s.avoided
	n := s.areasAround(refused)
	for depth := range s.deepest() + 1 {
		if !n.any(depth) {
			continue
		}
		off := s.nodesNear(n, depth)
		if !s.enoughWithout(off) {
			continue
		}
		for slot, is := range off {
			if is {
				s.keepOff(int32(slot))
			}
		}
		if s.searchSparing() {
			return true
		}
		s.places.Usage.Readmit(s.avoided[len(refused):])
		s.avoided = s.avoided[:len(refused)]
	}
	return false
}

// deepest returns the depth of the domains right above nodes in the deepest layout.
func (s *search) deepest() (depth int32) {
	for _, w := range s.wants {
		depth = max(depth, w.layout.Lowest())
	}
	return depth
}

// avoidedAreas holds the areas with several avoided nodes: domains of each layout, and zones whether or
// not they are a level.
type avoidedAreas struct {
	domains map[*place.Layout]map[int32]bool
	zones   map[string]bool
}

// areasAround returns the domains and zones with at least two of the nodes.
func (s *search) areasAround(refused []int32) avoidedAreas {
	n := avoidedAreas{domains: map[*place.Layout]map[int32]bool{}, zones: map[string]bool{}}
	for _, w := range s.wants {
		if n.domains[w.layout] == nil {
			n.domains[w.layout] = refusedTwice(w.layout, refused)
		}
	}
	seen := map[string]bool{}
	for _, r := range refused {
		zone := s.places.Nodes.At(r).Labels[corev1.LabelTopologyZone]
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
			if l.Depth(d) == depth {
				return true
			}
		}
	}
	return false
}

// nodesNear returns, by slot, the nodes that are in an area at the depth or below and are not avoided yet.
func (s *search) nodesNear(n avoidedAreas, depth int32) []bool {
	nodes := s.places.Nodes
	off := make([]bool, nodes.Slots())
	for l, those := range n.domains {
		for i := range off {
			slot := int32(i)
			leaf := l.DomainOf(slot)
			if leaf == place.Outside || off[i] || nodes.IsAvoided(slot) {
				continue
			}
			off[i] = isIn(l, leaf, those, depth) ||
				depth == 0 && n.zones[nodes.At(slot).Labels[corev1.LabelTopologyZone]]
		}
	}
	return off
}

// enoughWithout reports whether each ask would still have as many free places as pods, in a domain where
// they may all be, with the slots of off excluded. This is necessary for a placement, not sufficient.
func (s *search) enoughWithout(off []bool) bool {
	for _, w := range s.wants {
		g := s.groupOf(w)
		s.count(w)
		enough := false
		g.layout().Walk(g.within, g.widest(), func(d int32) { enough = enough || w.countWithout(d, off) >= int64(w.Count) })
		if !enough {
			return false
		}
	}
	return true
}

// countWithout returns how many pods fit in a domain without the slots of off. If even the whole domain
// holds too few it returns that number.
func (w *want) countWithout(d int32, off []bool) int64 {
	left := w.pods(d)
	if left < int64(w.Count) {
		return left
	}
	w.layout.Walk(d, w.layout.Bottom(), func(n int32) {
		if slot, _ := place.SlotOf(n); off[slot] {
			left -= int64(w.tally.fits[slot])
		}
	})
	return left
}

// refusedTwice returns the domains, except the root, that have refused nodes in two different children.
func refusedTwice(l *place.Layout, refused []int32) map[int32]bool {
	out, first := map[int32]bool{}, map[int32]int32{}
	for _, slot := range refused {
		if l.DomainOf(slot) == place.Outside {
			continue
		}
		for part, d := place.NodeAt(slot), l.DomainOf(slot); d > 0; part, d = d, l.Parent(d) {
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
func isIn(l *place.Layout, d int32, those map[int32]bool, depth int32) bool {
	for ; d > 0 && l.Depth(d) >= depth; d = l.Parent(d) {
		if those[d] {
			return true
		}
	}
	return false
}
