package find

import (
	"slices"

	"github.com/musterhq/muster/internal/engine/place"
)

// bind prepares the search for the bounds of its asks.
func (s *search) bind() {
	if !slices.ContainsFunc(s.wants, func(w *want) bool { return len(w.Bounds) > 0 || len(w.Limits) > 0 }) {
		return
	}
	b := &bounding{places: s.places}
	for _, w := range s.wants {
		w.bounding = b
		if len(b.limits) == 0 {
			b.limits = w.Limits
		}
		if len(b.kept) == 0 {
			b.kept = w.Kept
		}
	}
	for _, w := range s.wants {
		for i := range w.Bounds {
			r := rule{Bound: &w.Bounds[i], owner: w}
			if slices.ContainsFunc(b.rules,
				func(known rule) bool { return known.owner.PodSet == w.PodSet && known.Same(r.Bound) }) {
				continue // another gap of the same pod set
			}
			if len(b.rules) == maxRules {
				break
			}
			if r.Kind == place.Even {
				r.eligible = s.eligible(w, r.Bound)
				r.pods = s.countIn(b, r.Bound)
			}
			b.rules = append(b.rules, r)
		}
	}
	s.countKept(b)
	b.shares = make([]int32, len(b.rules))
	s.bounding = b
}

// eligible returns the domains that kube-scheduler compares for a spread constraint, by label value.
func (s *search) eligible(w *want, b *place.Bound) map[string]bool {
	f := s.places.Shapes.FilterOf(w.Ask)
	s.tallies.counted += s.places.Nodes.Slots()
	out := map[string]bool{}
	for slot := range s.places.Nodes.Slots() {
		n := s.places.Nodes.At(int32(slot))
		if n == nil {
			continue
		}
		if value, has := n.Labels[b.Key]; has && !out[value] && w.hasSpreadKeys(n) && (b.AllNodes || f.Selects(n)) &&
			(!b.Untainted || f.ToleratesAll(n)) {
			out[value] = true
		}
	}
	return out
}

// countKept counts the pods that keep their places, for all rules and limits.
func (s *search) countKept(b *bounding) {
	b.placedOn = map[string]placed{}
	if len(b.limits) > 0 {
		for _, a := range b.kept {
			for _, at := range a.Nodes {
				on := b.placedOn[at.Node]
				on.kept += int64(at.Count)
				b.placedOn[at.Node] = on
			}
		}
	}
	for i := range b.rules {
		r := &b.rules[i]
		r.ruleSums = ruleSums{all: domainSums{}, kept: domainSums{}, own: domainSums{}, ownKept: domainSums{}}
		for _, a := range b.kept {
			if r.CountsPodsOf(a.PodSet) {
				s.addKept(r.kept, r.Key, a.Nodes)
				s.addKept(r.all, r.Key, a.Nodes)
			}
			if r.owner.PodSet == a.PodSet {
				s.addKept(r.ownKept, r.Key, a.Nodes)
			}
		}
		r.counted = make([]bool, len(s.podSets))
		for _, w := range s.wants {
			if r.counted[w.index] = r.CountsPodsOf(w.PodSet); r.counted[w.index] {
				r.awaited++
			}
		}
	}
}

// countIn returns how many pods count for a bound in all: pods that keep their places, and pods that are asked for.
func (s *search) countIn(b *bounding, by *place.Bound) int64 {
	var sum int64
	for _, a := range b.kept {
		if by.CountsPodsOf(a.PodSet) {
			for _, at := range a.Nodes {
				sum += int64(at.Count)
			}
		}
	}
	for _, w := range s.wants {
		if by.CountsPodsOf(w.PodSet) {
			sum += int64(w.Count)
		}
	}
	return sum
}

// addKept adds places to the sums of the domains of a label.
func (s *search) addKept(to domainSums, key string, places []place.NodeCount) {
	for _, at := range places {
		if value, has := s.places.LabelOf(at.Node, key); has {
			to.add(value, int64(at.Count))
		}
	}
}

// isExact reports whether the search by domains finds places with the bounds whenever there are any, so that it is in
// vain to try all combinations.
func (s *search) isExact() bool {
	if s.bounding == nil {
		return true
	}
	if len(s.wants) > 1 || len(s.bounding.kept) > 0 || s.bounding.evens() > 1 {
		return false
	}
	w := s.wants[0]
	for i := range s.bounding.rules {
		r := &s.bounding.rules[i]
		_, ok := w.layout.DepthOf(r.Key)
		if !ok || !w.layout.NamesOnce(r.Key) || r.Kind == place.Even && (len(w.layers) > 1 || w.exclusiveDepth >= 0) {
			return false
		}
	}
	return true
}

// joined returns the groups in which asks that must be together, and have chosen no domain yet, get one domain.
func (s *search) joined(groups []*askGroup) []*askGroup {
	if s.bounding == nil {
		return groups
	}
	for i := range s.bounding.rules {
		r := &s.bounding.rules[i]
		depth, ok := r.owner.layout.DepthOf(r.Key)
		if r.Kind != place.Together || !ok || len(r.all) > 0 {
			continue
		}
		var into *askGroup
		groups = slices.DeleteFunc(groups, func(g *askGroup) bool {
			if g.layout() != r.owner.layout ||
				!slices.ContainsFunc(g.wants, func(w *want) bool { return w == r.owner || r.CountsPodsOf(w.PodSet) }) {
				return false
			}
			if into == nil {
				into = g
				return false
			}
			into.wants = append(into.wants, g.wants...)
			into.narrow(g.depth, g.hasLevel && g.mandatory)
			return true
		})
		into.narrow(depth, true)
	}
	return groups
}

// hasSpreadKeys reports whether the node has the labels of all spread constraints of the pods.
func (w *want) hasSpreadKeys(n *place.Node) bool {
	return !slices.ContainsFunc(w.Bounds, func(b place.Bound) bool {
		_, has := n.Labels[b.Key]
		return b.Kind == place.Even && !has
	})
}
