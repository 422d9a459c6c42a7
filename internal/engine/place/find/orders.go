package find

import (
	"cmp"
	"slices"

	"github.com/musterhq/muster/internal/engine/order"
)

// run looks for places of all groups together, at first away from areas with several avoided nodes.
func (s *search) run() bool { return s.searchOffAvoided() || s.searchAll() }

// searchAll searches all nodes that are not avoided: group after group, and then exhaustively.
func (s *search) searchAll() bool {
	return s.searchSparing() || (len(s.wants) > 1 || !s.isExact()) && s.exhaust()
}

// searchSparing first searches nodes without devices that the asks do not use, to leave the devices to pods that need
// them, then all nodes.
func (s *search) searchSparing() bool {
	if s.spareDevices() && s.searchInOrders() {
		return true
	}
	for _, w := range s.wants {
		if w.sparing {
			w.sparing, w.tally = false, nil
		}
	}
	return s.searchInOrders()
}

// searchInOrders places the hardest asks first, and then tries other orders.
func (s *search) searchInOrders() bool {
	for _, w := range s.wants {
		s.count(w)
		if !s.fitsAlone(w) {
			return false
		}
	}
	s.byHardness()
	for turn := range orders(s) {
		if turn > 0 {
			s.reorder(turn)
		}
		if s.bounding == nil && s.attempt() || s.bounding != nil && s.bounding.divisions(s.attempt) {
			return true
		}
		if s.bounding.exhausted() {
			return false
		}
	}
	return false
}

// attempt places all groups in their order.
func (s *search) attempt() bool {
	for _, g := range s.groups {
		if !s.placeGroup(g) {
			s.takeBack(0)
			return false
		}
	}
	if !s.bounding.keepsBounds() {
		s.takeBack(0)
		return false
	}
	s.found = s.charged
	return true
}

// fitsAlone reports whether an ask would have places if it were the only one.
func (s *search) fitsAlone(w *want) bool {
	if w.tally.sums[0] < int64(w.Count) {
		return false
	}
	if s.bounding != nil { // with shares, domains may hold more; whether each can have its share is not looked at
		return s.bounding.divisions(func() bool { return s.hasHeadroom(w) })
	}
	return s.hasHeadroom(w)
}

// byHardness sorts groups, and the asks in each: exclusive asks first, then asks that need one domain, then asks that
// take the largest share of what is free.
func (s *search) byHardness() {
	harder := func(a, b *want) int {
		return cmp.Or(
			order.TrueFirst(a.exclusiveDepth >= 0, b.exclusiveDepth >= 0),
			order.TrueFirst(a.Level != "" && a.Mandatory, b.Level != "" && b.Mandatory),
			cmp.Compare(share(b), share(a)),
			cmp.Compare(a.index, b.index),
		)
	}
	for _, g := range s.groups {
		slices.SortStableFunc(g.wants, harder)
	}
	slices.SortStableFunc(s.groups, func(a, b *askGroup) int { return harder(a.wants[0], b.wants[0]) })
}

// share returns the fraction of the free places that an ask takes.
func share(w *want) float64 { return float64(w.Count) / float64(max(1, w.tally.sums[0])) }

// maxOrders bounds the number of orders that are tried.
const maxOrders = 6

// orders returns the number of orders to try.
func orders(f *search) int {
	if len(f.wants) < 2 {
		return 1
	}
	return min(maxOrders, 2*max(len(f.groups), 2))
}

// reorder reverses the order, and for each second turn also moves the first group to the end.
func (s *search) reorder(turn int) {
	slices.Reverse(s.groups)
	for _, g := range s.groups {
		slices.Reverse(g.wants)
	}
	if turn%2 == 0 && len(s.groups) > 1 {
		s.groups = append(s.groups[1:], s.groups[0])
	}
}

// spareDevices excludes, for each ask, the nodes with devices that it does not ask for. It reports whether
// any ask is affected.
func (s *search) spareDevices() bool {
	any := false
	for _, w := range s.wants {
		w.sparing = s.places.Shapes.SparesDevices(&w.load)
		if w.sparing {
			w.tally = nil
			any = true
		}
	}
	return any
}
