package find

import (
	"cmp"
	"slices"

	"github.com/musterhq/muster/internal/engine/place"
)

// spread distributes full parts of the layer that is counted in d, and a smaller one if more is set, over
// the nodes of d: over as few subdomains as possible, and of equally few over the ones that are filled best,
// so that large free domains stay whole. The domain must hold the parts.
func (w *want) spread(d int32, full int64, more bool, emit func(slot, pods int32)) {
	depth := w.layout.Depth(d)
	here := w.layerAt(depth)
	if slot, ok := place.SlotOf(d); ok {
		pods := int32(full) * w.layers[here].size
		if more {
			pods += w.remainder(here)
		}
		emit(slot, pods)
		return
	}
	if next := w.layerAt(depth + 1); here != next {
		each, inSmaller, smaller := w.inner(here)
		full *= each
		if more {
			full += inSmaller
			more = smaller
		}
	}
	for _, p := range w.pick(w.layout.Children(d), full, more) {
		w.spread(p.child, p.full, p.more, emit)
	}
}

// picked is a child domain and the parts that it gets.
type picked struct {
	child int32
	full  int64
	more  bool
}

// pick chooses children for the parts, in the order of ranks: the tightest one that holds everything or,
// if none does, the largest one, and so on for the rest.
func (w *want) pick(children []int32, full int64, more bool) []picked {
	if best := w.tightest(children, full, more); best != place.Outside {
		return []picked{{best, full, more}}
	}
	type candidate struct {
		holds
		child int32
		pods  int64
		place int
	}
	var order []candidate
	for i, c := range children {
		if h := w.holdsOf(c); h.full > 0 || h.part >= 0 {
			order = append(order, candidate{h, c, w.pods(c), i})
		}
	}
	slices.SortFunc(order, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(b.full, a.full), cmp.Compare(a.pods, b.pods), cmp.Compare(a.place, b.place))
	})
	var out []picked
	var taken []holds
	for i := 0; i < len(order) && (full > 0 || more); i++ {
		if order[i].full >= full { // this may be the last child
			best := -1
			for j := i; j < len(order) && order[j].full >= full; j++ {
				c := &order[j]
				if c.has(full, more) &&
					(best < 0 || cmp.Or(cmp.Compare(c.pods, order[best].pods), cmp.Compare(c.place, order[best].place)) < 0) {
					best = j
				}
			}
			if best >= 0 {
				return append(out, picked{order[best].child, full, more})
			}
		}
		gets := min(order[i].full, full)
		if gets == 0 {
			continue
		}
		full -= gets
		out = append(out, picked{order[i].child, gets, false})
		taken = append(taken, order[i].holds)
	}
	if !more {
		return out
	}
	// Only a child that already has its parts can hold the smaller part as well. It moves to the end.
	for i, p := range out {
		if taken[i].part >= p.full {
			p.more = true
			return append(slices.Delete(out, i, i+1), p)
		}
	}
	return out
}

// tightest returns the child with the fewest free places that holds everything, the first one among equal
// ones, Outside if there is none.
func (w *want) tightest(children []int32, full int64, more bool) int32 {
	best, least := place.Outside, int64(0)
	for _, c := range children {
		if p := w.pods(c); (best == place.Outside || p < least) && w.holdsOf(c).has(full, more) {
			best, least = c, p
			if p == full && !more { // no child can be tighter
				break
			}
		}
	}
	return best
}

// sharing is the distribution of pods over domains with shares.
type sharing struct {
	w *want
	// least is how many pods a domain must get at least, missing the values of each limit without a domain so far.
	least   map[int32]int64
	missing []map[string]bool
}

// spreadShared distributes single pods over the nodes of d so that each domain gets its share, and reports whether that
// is possible.
func (w *want) spreadShared(d int32, pods int64, emit func(slot, pods int32)) bool {
	s := sharing{w: w, least: map[int32]int64{}, missing: make([]map[string]bool, len(w.limits))}
	for i, l := range w.limits {
		s.missing[i] = map[string]bool{}
		for value := range l.least {
			s.missing[i][value] = true
		}
	}
	s.coverAbove(d, pods)
	if !s.sum(d) || s.least[d] > pods ||
		slices.ContainsFunc(s.missing, func(left map[string]bool) bool { return len(left) > 0 }) {
		return false
	}
	s.spread(d, pods, emit)
	return true
}

// coverAbove gives the domains around d their shares: they get all of the pods.
func (s *sharing) coverAbove(d int32, pods int64) {
	for d = s.w.layout.Parent(d); d > 0; d = s.w.layout.Parent(d) {
		for i, l := range s.w.limits {
			value, has := s.w.labelOf(d)
			if l.depth == s.w.layout.Depth(d) && has && l.least[value] <= pods {
				delete(s.missing[i], value)
			}
		}
	}
}

// sum computes the least number of a domain and of the domains in it. It reports whether each of them can hold its
// number.
func (s *sharing) sum(d int32) bool {
	least, depth := int64(0), s.w.layout.Depth(d)
	if _, isNode := place.SlotOf(d); !isNode {
		for _, child := range s.w.layout.Children(d) {
			if !s.sum(child) {
				return false
			}
			least += s.least[child]
		}
	}
	for i, l := range s.w.limits {
		if value, has := s.w.labelOf(d); l.depth == depth && has && s.missing[i][value] {
			least = max(least, l.least[value])
			delete(s.missing[i], value)
		}
	}
	s.least[d] = least
	return least == 0 || s.holds(d) >= least
}

// holds returns how many pods a domain can hold.
func (s *sharing) holds(d int32) int64 {
	if s.w.pods(d) == 0 {
		return 0
	}
	return s.w.holdsOf(d).full
}

// spread gives each child its share, and the rest to the children that can hold most.
func (s *sharing) spread(d int32, pods int64, emit func(slot, pods int32)) {
	if s.least[d] == 0 {
		if pods > 0 {
			s.w.spread(d, pods, false, emit)
		}
		return
	}
	if slot, ok := place.SlotOf(d); ok {
		emit(slot, int32(pods))
		return
	}
	children := s.w.layout.Children(d)
	gets, rest := map[int32]int64{}, pods
	for _, child := range children {
		gets[child] = s.least[child]
		rest -= s.least[child]
	}
	largest := slices.Clone(children)
	slices.SortStableFunc(largest,
		func(a, b int32) int { return cmp.Compare(s.holds(b)-s.least[b], s.holds(a)-s.least[a]) })
	for _, child := range largest {
		more := min(rest, s.holds(child)-gets[child])
		if more > 0 {
			gets[child] += more
			rest -= more
		}
	}
	for _, child := range children {
		if gets[child] > 0 {
			s.spread(child, gets[child], emit)
		}
	}
}
