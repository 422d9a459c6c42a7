package place

import (
	"github.com/musterhq/muster/internal/engine/order"
)

// holdings holds the places of workloads, and charges those that wait for their pods.
type holdings struct {
	resources *resources
	changes   *changes
	nodes     *Nodes
	usage     *Usage
	pods      *podTable
	filters   *filters
	holders   map[order.Key]*holder
	// undo holds what try has to restore; it is nil outside of try.
	undo *undo
}

// hold sets or removes the places of a workload: see Map.Hold.
func (hs *holdings) hold(workload order.Key, h *Holding) {
	old := hs.holders[workload]
	if old == nil && h == nil {
		return
	}
	if hs.undo != nil {
		hs.undo.note(workload, old)
	}
	changed := map[*node]bool{}
	hs.movePlanned(workload, old != nil && old.podsLeaving(), h != nil && h.podsLeaving(), changed)
	delete(hs.holders, workload)
	if h != nil {
		hs.chargeHolder(hs.holder(workload, h), changed)
	}
	hs.recountExclusive(workload, changed)
	if old != nil {
		hs.unchargeHolder(old, changed)
	}
	for n := range changed {
		hs.usage.settle(n)
	}
	if hs.changes.trial == 0 {
		hs.changes.toCheck.Insert(workload)
	}
}

// holder resolves the places of a Holding and registers it.
func (hs *holdings) holder(key order.Key, h *Holding) *holder {
	out := &holder{Holding: *h, key: key, podSets: make([]heldPodSet, len(h.PodSets))}
	for i := range h.PodSets {
		set, held := &h.PodSets[i], &out.podSets[i]
		held.takes = hs.resources.vector(set.Ask.PerPod)
		for _, place := range set.Nodes {
			if place.Count <= 0 {
				continue
			}
			s := held.placesOn(hs.nodes, out, i, place.Node)
			s.count = addCount(s.count, place.Count)
		}
		for _, place := range set.Excess {
			s := held.placesOn(hs.nodes, out, i, place.Node)
			s.excess = addCount(s.excess, max(0, place.Count))
		}
	}
	hs.holders[key] = out
	return out
}

// chargeHolder charges the places of a holder.
func (hs *holdings) chargeHolder(h *holder, changed map[*node]bool) {
	for i := range h.podSets {
		set := &h.podSets[i]
		set.empty, set.occupied = 0, 0
		for _, s := range set.places {
			set.empty = addCount(set.empty, s.vacant())
			s.occupied = hs.countOccupied(s)
			set.occupied = addCount(set.occupied, s.occupied)
		}
		hs.updateEmpty(h, i)
		for _, s := range set.places {
			s.host.places = append(s.host.places, s)
			hs.updatePlaces(s)
			if s.node != nil {
				changed[s.node] = true
			}
		}
	}
}

// unchargeHolder takes back what chargeHolder charged.
func (hs *holdings) unchargeHolder(h *holder, changed map[*node]bool) {
	for i := range h.podSets {
		for _, s := range h.podSets[i].places {
			if s.node != nil {
				hs.chargeAbsent(s, -1)
				hs.setExcess(s, 0, 0)
				changed[s.node] = true
			}
			s.host.remove(s)
			hs.nodes.dropHost(s.host)
		}
	}
}

// updatePlaces charges the places that wait for their pods to the node that has the host's name now. The
// caller must settle that node.
func (hs *holdings) updatePlaces(s *hostPlaces) {
	var at *node
	var absent, present, expected int32
	if len(s.host.nodes) > 0 {
		at = s.host.nodes[0]
		if absent = s.count; !s.holder.Promised {
			here := hs.pods.ofWorkload[s.holder.key].onHost(s.holder.PodSets[s.podSet].Ask.PodSet, s.host)
			absent = max(0, absent-here)
			if !s.holder.Leaving {
				present = min(s.excess, max(0, here-s.count))
				expected = s.excess - present
			}
		}
	}
	occupied := hs.countOccupied(s)
	if at == s.node && absent == s.absent && present == s.excessPresent && expected == s.excessExpected && occupied == s.occupied {
		return
	}
	if s.node != nil {
		hs.chargeAbsent(s, -1)
		hs.setExcess(s, 0, 0)
		if s.node != at {
			hs.usage.settle(s.node)
		}
	}
	before := s.vacant()
	s.node, s.absent = at, absent
	set := &s.holder.podSets[s.podSet]
	set.empty = addCount(set.empty, s.vacant()-before)
	set.occupied += occupied - s.occupied
	s.occupied = occupied
	if at != nil {
		hs.chargeAbsent(s, 1)
		hs.setExcess(s, present, expected)
	}
	hs.updateEmpty(s.holder, s.podSet)
}

// setExcess takes this number of present excess pods out of the planned book of the node, and charges the
// expected ones to the held book.
func (hs *holdings) setExcess(s *hostPlaces, present, expected int32) {
	ask, takes := &s.holder.PodSets[s.podSet].Ask, s.holder.podSets[s.podSet].takes
	if present != s.excessPresent {
		hs.usage.charge(s.node, planned, takes, ask.HostPorts, ask.ExclusiveKey, s.excessPresent-present)
	}
	if expected != s.excessExpected {
		hs.usage.charge(s.node, held, takes, ask.HostPorts, ask.ExclusiveKey, expected-s.excessExpected)
	}
	s.excessPresent, s.excessExpected = present, expected
}

// updateEmpty frees the empty places of a pod set if there are no more of them than pods that have ended
// or, if unpinned, run elsewhere. Otherwise it charges them: it is unknown which of them are not needed.
func (hs *holdings) updateEmpty(h *holder, podSet int) {
	set := &h.podSets[podSet]
	ended := addCount(h.PodSets[podSet].Ended, hs.countElsewhere(h, podSet))
	over := ended > 0 && !h.Promised && set.empty <= ended
	if over == set.emptyAreFree {
		return
	}
	charge := func(times int32) {
		for _, s := range set.places {
			if s.node != nil {
				hs.chargeAbsent(s, times)
			}
		}
	}
	charge(-1)
	set.emptyAreFree = over
	charge(1)
	for _, s := range set.places {
		if s.node != nil && s.absent > 0 {
			hs.usage.settle(s.node)
		}
	}
}

// chargeAbsent charges the places that wait for their pods to their node, or takes that back if times is
// -1.
func (hs *holdings) chargeAbsent(s *hostPlaces, times int32) {
	pods := times * s.absent
	if pods == 0 || s.holder.podSets[s.podSet].emptyAreFree {
		return
	}
	ask := &s.holder.PodSets[s.podSet].Ask
	takes := s.holder.podSets[s.podSet].takes
	if !s.holder.Promised {
		hs.usage.charge(s.node, held, takes, ask.HostPorts, ask.ExclusiveKey, pods)
	}
	if !s.holder.Leaving {
		hs.usage.charge(s.node, planned, takes, ask.HostPorts, ask.ExclusiveKey, pods)
	}
}

// updatePlacesOn recharges all places on the host to the node that has its name now.
func (hs *holdings) updatePlacesOn(h *host) {
	if h == nil {
		return
	}
	for _, s := range h.places {
		hs.updatePlaces(s)
		if s.node != nil {
			hs.usage.settle(s.node)
		}
	}
}

// undo holds what Try has to restore: the holder of each changed workload before its first change.
type undo struct {
	before map[order.Key]*holder
	outer  *undo
}

func (u *undo) note(workload order.Key, h *holder) {
	if _, known := u.before[workload]; !known {
		u.before[workload] = h
	}
}

// try runs f and then undoes every hold in it: see Map.Try.
func (hs *holdings) try(f func()) {
	hs.undo = &undo{before: map[order.Key]*holder{}, outer: hs.undo}
	hs.changes.trial++
	defer func() {
		u := hs.undo
		hs.undo = nil
		for workload, before := range u.before {
			if before == nil {
				hs.hold(workload, nil)
			} else {
				hs.hold(workload, &before.Holding)
			}
		}
		hs.undo = u.outer
		hs.changes.trial--
	}()
	f()
}
