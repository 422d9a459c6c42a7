package place

import (
	"github.com/musterhq/muster/internal/engine/order"
)

// holder is a Holding in the form in which it is charged.
type holder struct {
	Holding
	key     order.Key
	podSets []heldPodSet
}

// heldPodSet holds what one pod of a pod set uses, and the places of the pod set by host.
type heldPodSet struct {
	takes  vector
	places []*hostPlaces
	// byHost indexes places by host name; nil if there are few.
	byHost map[string]*hostPlaces
	// empty is the number of places that have no pod. emptyAreFree is set if there are no more of them
	// than pods that have ended: then they are the places of those pods, and free.
	empty        int32
	emptyAreFree bool
	// occupied is the number of places that have a live pod; only counted for unpinned pods.
	occupied int32
}

// hostPlaces holds the places of one pod set on one host.
type hostPlaces struct {
	holder *holder
	podSet int
	host   *host
	count  int32
	// excess is the number of pods beyond these places that were told to end. excessPresent of them are
	// there, and left out of the planned book; excessExpected are not there but may still come.
	excess, excessPresent, excessExpected int32
	// occupied places have a live pod; only counted for unpinned pods.
	occupied int32
	// absent places wait for their pods and are charged to the node, which is nil if none has the name.
	absent int32
	node   *node
}

// Hold sets the places that a workload holds; nil removes them.
func (m *Map) Hold(workload order.Key, h *Holding) {
	old := m.holders[workload]
	if old == nil && h == nil {
		return
	}
	if m.undo != nil {
		m.undo.note(workload, old)
	}
	changed := map[*node]bool{}
	m.movePlanned(workload, old != nil && old.podsLeaving(), h != nil && h.podsLeaving(), changed)
	delete(m.holders, workload)
	if h != nil {
		m.chargeHolder(m.holder(workload, h), changed)
	}
	m.recountExclusive(workload, changed)
	if old != nil {
		m.unchargeHolder(old, changed)
	}
	for n := range changed {
		m.settle(n)
	}
	if m.trial == 0 {
		m.toCheck.Insert(workload)
	}
}

// movePlanned takes the pods of a workload out of the planned book when they start to leave (was is false,
// is true), or puts them back.
func (m *Map) movePlanned(workload order.Key, was, is bool, changed map[*node]bool) {
	c := m.podsOf[workload]
	if was == is || c == nil {
		return
	}
	times := int32(1)
	if is {
		times = -1
	}
	for _, p := range c.pods {
		m.charge(p.node, planned, p.takes, p.ports, p.counted, times)
		changed[p.node] = true
	}
}

// holder resolves the places of a Holding and registers it.
func (m *Map) holder(key order.Key, h *Holding) *holder {
	out := &holder{Holding: *h, key: key, podSets: make([]heldPodSet, len(h.PodSets))}
	for i := range h.PodSets {
		set, held := &h.PodSets[i], &out.podSets[i]
		held.takes = m.vector(set.Ask.PerPod)
		for _, place := range set.Nodes {
			if place.Count <= 0 {
				continue
			}
			s := held.placesOn(m, out, i, place.Node)
			s.count = addCount(s.count, place.Count)
		}
		for _, place := range set.Excess {
			s := held.placesOn(m, out, i, place.Node)
			s.excess = addCount(s.excess, max(0, place.Count))
		}
	}
	m.holders[key] = out
	return out
}

// addCount returns the sum of two counts, saturating at cap32.
func addCount(a, b int32) int32 { return int32(min(int64(a)+int64(b), cap32)) }

// placesOn returns the places on a host, which it creates if needed.
func (h *heldPodSet) placesOn(m *Map, of *holder, podSet int, host string) *hostPlaces {
	s := h.at(host)
	if s == nil {
		s = &hostPlaces{holder: of, podSet: podSet, host: m.hostOf(host)}
		h.add(s)
	}
	return s
}

// fewPlaces is the number of hosts up to which a linear search is used.
const fewPlaces = 8

func (h *heldPodSet) add(s *hostPlaces) {
	h.places = append(h.places, s)
	if len(h.places) <= fewPlaces {
		return
	}
	if h.byHost == nil {
		h.byHost = map[string]*hostPlaces{}
		for _, s := range h.places {
			h.byHost[s.host.name] = s
		}
	}
	h.byHost[s.host.name] = s
}

func (h *heldPodSet) at(host string) *hostPlaces {
	if h.byHost != nil {
		return h.byHost[host]
	}
	for _, s := range h.places {
		if s.host.name == host {
			return s
		}
	}
	return nil
}

// at returns the places of a pod set on a host, nil if there are none.
func (h *holder) at(podSet, host string) *hostPlaces {
	for i := range h.podSets {
		if h.PodSets[i].Ask.PodSet == podSet {
			return h.podSets[i].at(host)
		}
	}
	return nil
}

// Filled reports whether a pod set has places on the host and all of them have their pods.
func (m *Map) Filled(of PodSetKey, host string) bool {
	h := m.holders[of.Workload]
	if h == nil {
		return false
	}
	s := h.at(of.PodSet, host)
	return s != nil && s.node != nil && s.count > 0 && s.absent == 0
}

// chargeHolder charges the places of a holder.
func (m *Map) chargeHolder(h *holder, changed map[*node]bool) {
	for i := range h.podSets {
		set := &h.podSets[i]
		set.empty, set.occupied = 0, 0
		for _, s := range set.places {
			set.empty = addCount(set.empty, s.vacant())
			s.occupied = m.countOccupied(s)
			set.occupied = addCount(set.occupied, s.occupied)
		}
		m.updateEmpty(h, i)
		for _, s := range set.places {
			s.host.places = append(s.host.places, s)
			m.updatePlaces(s)
			if s.node != nil {
				changed[s.node] = true
			}
		}
	}
}

// unchargeHolder takes back what chargeHolder charged.
func (m *Map) unchargeHolder(h *holder, changed map[*node]bool) {
	for i := range h.podSets {
		for _, s := range h.podSets[i].places {
			if s.node != nil {
				m.chargeAbsent(s, -1)
				m.setExcess(s, 0, 0)
				changed[s.node] = true
			}
			s.host.remove(s)
			m.dropHost(s.host)
		}
	}
}

func (h *host) remove(s *hostPlaces) {
	for i, other := range h.places {
		if other == s {
			last := len(h.places) - 1
			h.places[i] = h.places[last]
			h.places[last] = nil
			h.places = h.places[:last]
			return
		}
	}
}

// updatePlaces charges the places that wait for their pods to the node that has the host's name now. The
// caller must settle that node.
func (m *Map) updatePlaces(s *hostPlaces) {
	var at *node
	var absent, present, expected int32
	if len(s.host.nodes) > 0 {
		at = s.host.nodes[0]
		if absent = s.count; !s.holder.Promised {
			here := m.podsOf[s.holder.key].onHost(s.holder.PodSets[s.podSet].Ask.PodSet, s.host)
			absent = max(0, absent-here)
			if !s.holder.Leaving {
				present = min(s.excess, max(0, here-s.count))
				expected = s.excess - present
			}
		}
	}
	occupied := m.countOccupied(s)
	if at == s.node && absent == s.absent && present == s.excessPresent && expected == s.excessExpected && occupied == s.occupied {
		return
	}
	if s.node != nil {
		m.chargeAbsent(s, -1)
		m.setExcess(s, 0, 0)
		if s.node != at {
			m.settle(s.node)
		}
	}
	before := s.vacant()
	s.node, s.absent = at, absent
	set := &s.holder.podSets[s.podSet]
	set.empty = addCount(set.empty, s.vacant()-before)
	set.occupied += occupied - s.occupied
	s.occupied = occupied
	if at != nil {
		m.chargeAbsent(s, 1)
		m.setExcess(s, present, expected)
	}
	m.updateEmpty(s.holder, s.podSet)
}

// setExcess takes this number of present excess pods out of the planned book of the node, and charges the
// expected ones to the held book.
func (m *Map) setExcess(s *hostPlaces, present, expected int32) {
	ask, takes := &s.holder.PodSets[s.podSet].Ask, s.holder.podSets[s.podSet].takes
	if present != s.excessPresent {
		m.charge(s.node, planned, takes, ask.HostPorts, ask.ExclusiveKey, s.excessPresent-present)
	}
	if expected != s.excessExpected {
		m.charge(s.node, held, takes, ask.HostPorts, ask.ExclusiveKey, expected-s.excessExpected)
	}
	s.excessPresent, s.excessExpected = present, expected
}

// updateEmpty frees the empty places of a pod set if there are no more of them than pods that have ended
// or, if unpinned, run elsewhere. Otherwise it charges them: it is unknown which of them are not needed.
func (m *Map) updateEmpty(h *holder, podSet int) {
	set := &h.podSets[podSet]
	ended := addCount(h.PodSets[podSet].Ended, m.countElsewhere(h, podSet))
	over := ended > 0 && !h.Promised && set.empty <= ended
	if over == set.emptyAreFree {
		return
	}
	charge := func(times int32) {
		for _, s := range set.places {
			if s.node != nil {
				m.chargeAbsent(s, times)
			}
		}
	}
	charge(-1)
	set.emptyAreFree = over
	charge(1)
	for _, s := range set.places {
		if s.node != nil && s.absent > 0 {
			m.settle(s.node)
		}
	}
}

// chargeAbsent charges the places that wait for their pods to their node, or takes that back if times is
// -1.
func (m *Map) chargeAbsent(s *hostPlaces, times int32) {
	pods := times * s.absent
	if pods == 0 || s.holder.podSets[s.podSet].emptyAreFree {
		return
	}
	ask := &s.holder.PodSets[s.podSet].Ask
	takes := s.holder.podSets[s.podSet].takes
	if !s.holder.Promised {
		m.charge(s.node, held, takes, ask.HostPorts, ask.ExclusiveKey, pods)
	}
	if !s.holder.Leaving {
		m.charge(s.node, planned, takes, ask.HostPorts, ask.ExclusiveKey, pods)
	}
}

// updatePlacesOn recharges all places on the host to the node that has its name now.
func (m *Map) updatePlacesOn(h *host) {
	if h == nil {
		return
	}
	for _, s := range h.places {
		m.updatePlaces(s)
		if s.node != nil {
			m.settle(s.node)
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

// Try runs f and then undoes every Hold in it. TakeFreed and TakeInvalid do not report what happens in f.
// Calls may be nested.
func (m *Map) Try(f func()) {
	m.undo = &undo{before: map[order.Key]*holder{}, outer: m.undo}
	m.trial++
	defer func() {
		u := m.undo
		m.undo = nil
		for workload, before := range u.before {
			if before == nil {
				m.Hold(workload, nil)
			} else {
				m.Hold(workload, &before.Holding)
			}
		}
		m.undo = u.outer
		m.trial--
	}()
	f()
}
