package find

import (
	"slices"

	"github.com/musterhq/muster/internal/engine/place"
)

const (
	// exhaustSteps bounds the exhaustive search, to a few milliseconds.
	exhaustSteps = 20_000
	// looksPerStep is how many nodes, looked at for their free places, cost as much as one step.
	looksPerStep = 16
)

// exhaustion is a search through every combination: all domains for each part and, for single pods, all
// counts on each node. It takes its charges back on return, whether or not it has found places.
type exhaustion struct {
	search *search
	steps  int
	// nodes holds the nodes chosen so far for each want, by its index.
	nodes map[int][]slotCount
	// groups are the groups of the search as they were before bounds joined some: pods that must be together may have
	// several domains.
	groups []*askGroup
}

// exhaust tries every way to place the asks, within the limit of steps.
func (s *search) exhaust() bool {
	e := &exhaustion{search: s, nodes: map[int][]slotCount{}, groups: s.groups}
	if s.bounding != nil {
		e.groups = groupsOf(s.wants)
		for _, g := range e.groups {
			g.within = s.groupOf(g.wants[0]).within
		}
	}
	for _, w := range s.wants {
		s.count(w)
	}
	return e.group(0)
}

// spent counts a step and reports whether a limit is exceeded.
func (e *exhaustion) spent() bool { e.steps++; return e.over() }

// over reports whether a limit is exceeded.
func (e *exhaustion) over() bool { return e.steps > exhaustSteps || e.search.bounding.exhausted() }

// group places the i-th group and all that follow.
func (e *exhaustion) group(i int) bool {
	if i == len(e.groups) {
		if !e.search.bounding.keepsBounds() {
			return false
		}
		e.search.found = nil
		for _, w := range e.search.wants {
			e.search.found = append(e.search.found, chosenNodes{w, slices.Clone(e.nodes[w.index])})
		}
		return true
	}
	g := e.groups[i]
	if !g.hasLevel || !g.mandatory {
		return e.want(g, i, 0, g.within)
	}
	found := false
	g.layout().Walk(g.within, g.depth, func(d int32) {
		found = found || !e.spent() && e.want(g, i, 0, d)
	})
	return found
}

// want places the i-th ask of a group in a domain, and all that follow.
func (e *exhaustion) want(g *askGroup, group, i int, d int32) bool {
	if i == len(g.wants) {
		return e.group(group + 1)
	}
	w := g.wants[i]
	depth := w.layout.Depth(d)
	full, more, ok := w.need(depth)
	then := func() bool { return e.want(g, group, i+1, d) }
	if w.exclusiveDepth >= 0 && w.exclusiveDepth < depth { // the whole pod set is one exclusive part
		then = e.makeExclusive(w, then)
	}
	return ok && e.parts(w, w.layerAt(depth), d, full, more, 0, then)
}

// parts places parts of a layer in domains of d, and the smaller part last. Since full parts are alike, it
// skips the domains before index first.
func (e *exhaustion) parts(w *want, layer int, d int32, full int64, more bool, first int, then func() bool) bool {
	if full == 0 && !more {
		return then()
	}
	if layer == len(w.layers)-1 && (w.exclusiveDepth < 0 || layer > 0) {
		return e.pods(w, d, full, then)
	}
	var domains []int32
	w.layout.Walk(d, w.layers[layer].depth, func(d int32) { domains = append(domains, d) })
	if full == 0 {
		first = 0
	}
	for i := first; i < len(domains); i++ {
		if e.spent() {
			return false
		}
		next := then
		if full > 0 {
			next = func() bool { return e.parts(w, layer, d, full-1, more, i, then) }
		}
		if e.part(w, layer, domains[i], full > 0, next) {
			return true
		}
	}
	return false
}

// part places one part of a layer in a domain.
func (e *exhaustion) part(w *want, layer int, d int32, whole bool, then func() bool) bool {
	if layer == 0 && w.exclusiveDepth >= 0 {
		then = e.makeExclusive(w, then)
	}
	if layer == len(w.layers)-1 {
		return e.pods(w, d, 1, then)
	}
	each, inSmaller, smaller := w.inner(layer)
	if whole {
		return e.parts(w, layer+1, d, each, false, 0, then)
	}
	return e.parts(w, layer+1, d, inSmaller, smaller, 0, then)
}

// makeExclusive returns a continuation in which the nodes chosen from here on are exclusive to their part.
func (e *exhaustion) makeExclusive(w *want, then func() bool) func() bool {
	from := len(e.nodes[w.index])
	return func() bool {
		nodes := e.nodes[w.index][from:]
		e.chargeExclusive(w, nodes, 1)
		defer e.chargeExclusive(w, nodes, -1)
		return then()
	}
}

func (e *exhaustion) chargeExclusive(w *want, nodes []slotCount, times int32) {
	for _, c := range nodes {
		e.search.places.Usage.ChargeExclusive(e.search.on, c.slot, w.ExclusiveKey, times*c.pods)
	}
}

// pods places single pods on the nodes of a domain in every way.
func (e *exhaustion) pods(w *want, d int32, count int64, then func() bool) bool {
	var fits []slotCount
	looked := 0
	w.layout.Walk(d, w.layout.Bottom(), func(d int32) {
		looked++
		slot, _ := place.SlotOf(d)
		if pods, _ := e.search.places.Shapes.Fit(&w.tally.shape, slot); pods > 0 {
			fits = append(fits, slotCount{slot, pods})
		}
	})
	e.steps += looked / looksPerStep
	after := make([]int64, len(fits)+1)
	for i := len(fits) - 1; i >= 0; i-- {
		after[i] = after[i+1] + int64(fits[i].pods)
	}
	return e.podsFrom(w, fits, after, 0, count, then)
}

func (e *exhaustion) podsFrom(w *want, fits []slotCount, after []int64, i int, count int64, then func() bool) bool {
	switch {
	case count == 0:
		return then()
	case after[i] < count || e.spent():
		return false
	}
	for pods := int32(min(int64(fits[i].pods), count)); pods >= 0; pods-- {
		e.put(w, fits[i].slot, pods)
		found := e.podsFrom(w, fits, after, i+1, count-int64(pods), then)
		e.take(w, fits[i].slot, pods)
		if found {
			return true
		}
		if e.over() {
			return false
		}
	}
	return false
}

// put charges pods, but not as exclusive: other pods of their part may share the domain.
func (e *exhaustion) put(w *want, slot, pods int32) {
	if pods > 0 {
		e.nodes[w.index] = append(e.nodes[w.index], slotCount{slot, pods})
		e.charge(w, slot, pods)
	}
}

func (e *exhaustion) take(w *want, slot, pods int32) {
	if pods > 0 {
		e.nodes[w.index] = e.nodes[w.index][:len(e.nodes[w.index])-1]
		e.charge(w, slot, -pods)
	}
}

func (e *exhaustion) charge(w *want, slot, pods int32) {
	e.search.bounding.countPlaced(w, []slotCount{{slot, pods}}, 1)
	e.search.places.Usage.Charge(e.search.on, slot, &w.load, "", pods)
}
