package find

import (
	"slices"

	"github.com/musterhq/muster/internal/engine/place"
)

// FitsAt reports whether the asks still fit at exactly the given places, in time proportional to these. It
// does not check how near they are to each other: the caller does, if node labels may have changed since they
// were found.
func (f *Finder) FitsAt(asks []place.Ask, given []place.Assignment, on place.Ledger) bool {
	s := spotCheck{places: f.places, on: on}
	f.places.Usage.BeginTrial()
	defer func() {
		s.takeBack()
		f.places.Usage.EndTrial()
	}()
	for i := range min(len(asks), len(given)) {
		if !s.fits(&asks[i], given[i].Nodes) {
			return false
		}
	}
	return len(asks) == len(given)
}

// spotCheck charges given places node by node, as long as they fit.
type spotCheck struct {
	places  *place.Map
	on      place.Ledger
	charged []spotCharge
}

// spotCharge is a number of equal pods that are charged on the node in a slot.
type spotCharge struct {
	slotCount
	each      place.Load
	exclusive string
}

// fits charges the places of one ask, and reports whether they fit.
func (s *spotCheck) fits(a *place.Ask, nodes []place.NodeCount) bool {
	if !s.places.IsPlaced(a.Flavor) {
		return false
	}
	s.places.Exclusive.Know(a.ExclusiveKey)
	shape := s.places.Shapes.Of(a, a.FilterKey(), s.places.Layouts.Of(a.Flavor, a.ExclusiveKey), s.on)
	size := max(1, a.Count)
	if len(a.Slices) > 0 {
		size = max(1, a.Slices[0].Size)
	}
	var part []slotCount
	left := size
	for _, at := range nodes {
		slot, named := s.places.Nodes.SlotOf(at.Node)
		if named != 1 || slices.Contains(a.Avoid, at.Node) {
			return false
		}
		for at.Count > 0 {
			pods := min(at.Count, left)
			if fits, _ := s.places.Shapes.Fit(&shape, slot); fits < pods {
				return false
			}
			s.charge(slotCount{slot, pods}, shape.Load, "") // pods of the same part do not exclude each other
			part = append(part, slotCount{slot, pods})
			at.Count -= pods
			if left -= pods; left == 0 {
				s.exclude(part, a.ExclusiveKey)
				part, left = nil, size
			}
		}
	}
	s.exclude(part, a.ExclusiveKey)
	return true
}

// exclude makes the nodes of a part exclusive for the places that follow.
func (s *spotCheck) exclude(part []slotCount, by string) {
	if by == "" {
		return
	}
	for _, at := range part {
		s.charge(at, place.Load{}, by)
	}
}

// charge charges places on one node until takeBack.
func (s *spotCheck) charge(at slotCount, each place.Load, exclusive string) {
	s.places.Usage.Charge(s.on, at.slot, &each, exclusive, at.pods)
	s.charged = append(s.charged, spotCharge{at, each, exclusive})
}

// takeBack takes back all charges.
func (s *spotCheck) takeBack() {
	for i := range s.charged {
		c := &s.charged[i]
		s.places.Usage.Charge(s.on, c.slot, &c.each, c.exclusive, -c.pods)
	}
}
