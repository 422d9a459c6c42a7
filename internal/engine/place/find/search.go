package find

import (
	"slices"

	"github.com/musterhq/muster/internal/engine/place"
)

// search is one search for places.
type search struct {
	tallies *tallies
	places  *place.Map
	on      place.Ledger
	podSets []string
	wants   []*want
	groups  []*askGroup
	// charged holds the places found so far, which count as used.
	charged []chosenNodes
	// found holds the places of all asks.
	found []chosenNodes
	// avoided holds the slots of nodes that are kept off.
	avoided []int32
	// bounding is nil if there are no bounds between pods.
	bounding *bounding
}

// chosenNodes holds the nodes chosen for one ask.
type chosenNodes struct {
	want  *want
	nodes []slotCount
}

// close takes back everything that a search changed.
func (s *search) close() {
	s.takeBack(0)
	if s.bounding != nil {
		s.tallies.counted += s.bounding.looked / looksPerNode
	}
	s.places.Usage.Readmit(s.avoided)
	s.places.Usage.EndTrial()
}

// count brings the tally of an ask up to date.
func (s *search) count(w *want) {
	if w.tally == nil {
		w.tally = s.tallies.of(w.Ask, w.layout, s.on, w.sparing)
	} else {
		s.tallies.refresh(w.tally)
	}
}

// keepOff excludes a node from the search.
func (s *search) keepOff(slot int32) {
	if s.places.Usage.Avoid(slot) {
		s.avoided = append(s.avoided, slot)
	}
}

// chargeAsk records the places of an ask and charges them.
func (s *search) chargeAsk(w *want, nodes []slotCount) {
	s.charged = append(s.charged, chosenNodes{w, nodes})
	s.bounding.countPlaced(w, nodes, 1)
	s.bounding.await(w, -1)
	if len(s.charged) < len(s.wants) { // charges of the last ask would not be read
		s.chargeFound(w, nodes, 1)
	}
}

// takeBack removes all charges but the first keep ones.
func (s *search) takeBack(keep int) {
	for i := len(s.charged) - 1; i >= keep; i-- {
		s.bounding.countPlaced(s.charged[i].want, s.charged[i].nodes, -1)
		s.bounding.await(s.charged[i].want, 1)
		if i < len(s.wants)-1 {
			s.chargeFound(s.charged[i].want, s.charged[i].nodes, -1)
		}
	}
	s.charged = s.charged[:keep]
}

// chargeFound charges places in the search's ledger; times -1 takes them back.
func (s *search) chargeFound(w *want, nodes []slotCount, times int32) {
	for _, c := range nodes {
		s.places.Usage.Charge(s.on, c.slot, &w.load, w.ExclusiveKey, times*c.pods)
	}
}

// assignments returns the places found, by ask.
func (s *search) assignments() []place.Assignment {
	out := make([]place.Assignment, len(s.podSets))
	for i, name := range s.podSets {
		out[i].PodSet = name
	}
	for _, c := range s.found {
		a := &out[c.want.index]
		a.Nodes = make([]place.NodeCount, 0, len(c.nodes))
		for _, on := range c.nodes {
			a.Nodes = append(a.Nodes, place.NodeCount{Node: s.places.Nodes.HostAt(on.slot), Count: on.pods})
		}
	}
	return out
}

func (s *search) groupOf(w *want) *askGroup {
	for _, g := range s.groups {
		if slices.Contains(g.wants, w) {
			return g
		}
	}
	return nil
}
