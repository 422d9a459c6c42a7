package place

import (
	"cmp"
	"slices"
)

// spread distributes full parts of the layer that is counted in d, and a smaller one if more is set, over
// the nodes of d: over as few subdomains as possible, and among those over the ones that are filled best,
// so that large free domains stay whole. The domain must hold the parts.
func (m *Map) spread(w *want, d int32, full int64, more bool, emit func(slot, pods int32)) {
	depth := w.layout.depth(d)
	here := w.layerAt(depth)
	if slot, ok := slotOf(d); ok {
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
	for _, p := range w.pick(m.children(w.layout, d), full, more) {
		m.spread(w, p.child, p.full, p.more, emit)
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
	if best := w.tightest(children, full, more); best != outside {
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
				if c.has(full, more) && (best < 0 || cmp.Or(cmp.Compare(c.pods, order[best].pods), cmp.Compare(c.place, order[best].place)) < 0) {
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
// ones, outside if there is none.
func (w *want) tightest(children []int32, full int64, more bool) int32 {
	best, least := outside, int64(0)
	for _, c := range children {
		if p := w.pods(c); (best == outside || p < least) && w.holdsOf(c).has(full, more) {
			best, least = c, p
			if p == full && !more { // no child can be tighter
				break
			}
		}
	}
	return best
}
