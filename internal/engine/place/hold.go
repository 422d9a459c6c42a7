package place

import (
	"github.com/musterhq/muster/internal/engine/order"
)

// holdings holds the places of workloads, and charges the places that wait for their pods.
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
	hs.changes.check(workload)
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
			hp := held.placesOn(hs.nodes, out, i, place.Node)
			hp.count = addCount(hp.count, place.Count)
		}
		for _, place := range set.Excess {
			hp := held.placesOn(hs.nodes, out, i, place.Node)
			hp.excess = addCount(hp.excess, max(0, place.Count))
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
		for _, hp := range set.places {
			set.empty = addCount(set.empty, hp.vacant())
			hp.occupied = hs.countOccupied(hp)
			set.occupied = addCount(set.occupied, hp.occupied)
		}
		hs.updateEmpty(h, i)
		for _, hp := range set.places {
			hp.host.places = append(hp.host.places, hp)
			hs.updatePlaces(hp)
			if hp.node != nil {
				changed[hp.node] = true
			}
		}
	}
}

// unchargeHolder takes back what chargeHolder charged.
func (hs *holdings) unchargeHolder(h *holder, changed map[*node]bool) {
	for i := range h.podSets {
		for _, hp := range h.podSets[i].places {
			if hp.node != nil {
				hs.chargeAbsent(hp, -1)
				hs.setExcess(hp, 0, 0)
				changed[hp.node] = true
			}
			hp.host.remove(hp)
			hs.nodes.dropHost(hp.host)
		}
	}
}

// updatePlaces charges the places that wait for their pods to the node that has the host's name now. The
// caller must settle that node.
func (hs *holdings) updatePlaces(hp *hostPlaces) {
	var at *node
	var absent, present, expected int32
	if len(hp.host.nodes) > 0 {
		at = hp.host.nodes[0]
		if absent = hp.count; !hp.holder.Nominated {
			here := hs.pods.ofWorkload[hp.holder.key].onHost(hp.ask().PodSet, hp.host)
			absent = max(0, absent-here)
			if !hp.holder.Leaving {
				present = min(hp.excess, max(0, here-hp.count))
				expected = hp.excess - present
			}
		}
	}
	occupied := hs.countOccupied(hp)
	if at == hp.node && absent == hp.absent && present == hp.excessPresent && expected == hp.excessExpected &&
		occupied == hp.occupied {
		return
	}
	if hp.node != nil {
		hs.chargeAbsent(hp, -1)
		hs.setExcess(hp, 0, 0)
		if hp.node != at {
			hs.usage.settle(hp.node)
		}
	}
	before := hp.vacant()
	hp.node, hp.absent = at, absent
	set := hp.held()
	set.empty = addCount(set.empty, hp.vacant()-before)
	set.occupied += occupied - hp.occupied
	hp.occupied = occupied
	if at != nil {
		hs.chargeAbsent(hp, 1)
		hs.setExcess(hp, present, expected)
	}
	hs.updateEmpty(hp.holder, hp.podSet)
}

// setExcess takes this number of present excess pods out of the planned book of the node, and charges the
// expected ones to the held book.
func (hs *holdings) setExcess(hp *hostPlaces, present, expected int32) {
	hs.chargePlaces(hp, planned, hp.excessPresent-present)
	hs.chargePlaces(hp, held, expected-hp.excessExpected)
	hp.excessPresent, hp.excessExpected = present, expected
}

// updateEmpty frees the empty places of a pod set if they are no more than the pods that have ended or, if unpinned,
// run elsewhere. Otherwise it charges the empty places: it is unknown which are not needed.
func (hs *holdings) updateEmpty(h *holder, podSet int) {
	set := &h.podSets[podSet]
	ended := addCount(h.PodSets[podSet].Ended, hs.countElsewhere(h, podSet))
	over := ended > 0 && !h.Nominated && set.empty <= ended
	if over == set.emptyAreFree {
		return
	}
	charge := func(times int32) {
		for _, hp := range set.places {
			if hp.node != nil {
				hs.chargeAbsent(hp, times)
			}
		}
	}
	charge(-1)
	set.emptyAreFree = over
	charge(1)
	for _, hp := range set.places {
		if hp.node != nil && hp.absent > 0 {
			hs.usage.settle(hp.node)
		}
	}
}

// chargeAbsent charges the places that wait for their pods to their node, or takes that back if times is
// -1.
func (hs *holdings) chargeAbsent(hp *hostPlaces, times int32) {
	if hp.held().emptyAreFree {
		return
	}
	if !hp.holder.Nominated {
		hs.chargePlaces(hp, held, times*hp.absent)
	}
	if !hp.holder.Leaving {
		hs.chargePlaces(hp, planned, times*hp.absent)
	}
}

// chargePlaces counts a number of pods of the places in a book of their node; a negative number takes them back.
func (hs *holdings) chargePlaces(hp *hostPlaces, b book, pods int32) {
	if pods != 0 {
		ask := hp.ask()
		hs.usage.charge(hp.node, b, hp.held().takes, ask.HostPorts, ask.ExclusiveKey, pods)
	}
}

// updatePlacesOn recharges all places on the host to the node that has its name now.
func (hs *holdings) updatePlacesOn(h *host) {
	if h == nil {
		return
	}
	for _, hp := range h.places {
		hs.updatePlaces(hp)
		if hp.node != nil {
			hs.usage.settle(hp.node)
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
	hs.changes.begin()
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
		hs.changes.end()
	}()
	f()
}
