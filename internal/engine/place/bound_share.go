package place

import (
	"cmp"
	"slices"
)

// placeShared finds places for a group some of whose domains must get a share of the pods. It tries every domain that may
// hold the group.
func (m *Map) placeShared(f *search, p *askGroup, depth int32) bool {
	found := false
	m.walk(p.layout(), p.within, depth, func(d int32) { found = found || m.placeIn(f, p, d) })
	return found
}

// spreadShared distributes single pods over the nodes of d so that each domain gets its share, and reports whether that is
// possible.
func (m *Map) spreadShared(w *want, d int32, pods int64, emit func(slot, pods int32)) bool {
	s := sharing{m: m, w: w, least: map[int32]int64{}, missing: make([]map[string]bool, len(w.limits))}
	for i, l := range w.limits {
		s.missing[i] = map[string]bool{}
		for value := range l.least {
			s.missing[i][value] = true
		}
	}
	s.coverAbove(d, pods)
	if !s.sum(d) || s.least[d] > pods || slices.ContainsFunc(s.missing, func(left map[string]bool) bool { return len(left) > 0 }) {
		return false
	}
	s.spread(d, pods, emit)
	return true
}

// sharing is the distribution of pods over domains with shares.
type sharing struct {
	m *Map
	w *want
	// least is how many pods a domain must get at least, missing the values of each limit without a domain so far.
	least   map[int32]int64
	missing []map[string]bool
}

// coverAbove gives the domains around d their shares: they get all of the pods.
func (s *sharing) coverAbove(d int32, pods int64) {
	for d = s.w.layout.parent(d); d > 0; d = s.w.layout.parent(d) {
		for i, l := range s.w.limits {
			value, has := s.w.labelOf(d)
			if l.depth == s.w.layout.depth(d) && has && l.least[value] <= pods {
				delete(s.missing[i], value)
			}
		}
	}
}

// sum computes the least number of a domain and of those in it. It reports whether each of them can hold its number.
func (s *sharing) sum(d int32) bool {
	least, depth := int64(0), s.w.layout.depth(d)
	if _, isNode := slotOf(d); !isNode {
		for _, child := range s.m.children(s.w.layout, d) {
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

// spread gives each child its share, and the rest to those that can hold most.
func (s *sharing) spread(d int32, pods int64, emit func(slot, pods int32)) {
	if s.least[d] == 0 {
		if pods > 0 {
			s.m.spread(s.w, d, pods, false, emit)
		}
		return
	}
	if slot, ok := slotOf(d); ok {
		emit(slot, int32(pods))
		return
	}
	children := s.m.children(s.w.layout, d)
	gets, rest := map[int32]int64{}, pods
	for _, child := range children {
		gets[child] = s.least[child]
		rest -= s.least[child]
	}
	largest := slices.Clone(children)
	slices.SortStableFunc(largest, func(a, b int32) int { return cmp.Compare(s.holds(b)-s.least[b], s.holds(a)-s.least[a]) })
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
