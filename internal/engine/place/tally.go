package place

import (
	"fmt"
	"slices"
)

// tallyKey identifies the asks that share a tally.
type tallyKey struct {
	shape   string
	ledger  Ledger
	sparing bool
}

// tallies caches the tallies that were used last.
type tallies struct {
	byKey map[tallyKey]*tally
	uses  uint64
}

// talliesKept bounds memory: a tally takes about 10 bytes per node.
const talliesKept = 64

// tally is how many pods of one shape fit on each node and in each domain, as of a position in the change log.
type tally struct {
	ledger Ledger
	// sparing excludes nodes with devices that the pods do not ask for.
	sparing   bool
	takes     vector
	ports     []HostPort
	exclusive string
	layout    *layout
	filter    *filter

	// fits is the number of pods that fit on the node in a slot; why is the refusal if none does.
	fits []int32
	why  []refusal
	// sums is the number of pods that fit in each domain of the layout, whose version is recorded.
	sums    []int64
	version uint64
	// extremes holds those of the nodes of each domain right above nodes, where known.
	extremes []extremes
	// lost counts the nodes that each refusal takes away, nodes all nodes.
	lost  []int32
	nodes int32

	read uint64
	used uint64
}

// extremes holds the smallest number of pods that fit on a node, of the nodes on which any fits, and the
// largest.
type extremes struct {
	known        bool
	fewest, most int32
}

// extremesOf returns the extremes of a domain right above nodes.
func (t *tally) extremesOf(d int32) extremes {
	e := &t.extremes[d]
	if e.known {
		return *e
	}
	*e = extremes{known: true}
	for _, child := range t.layout.domains[d].children {
		fits := t.fits[nodeAt(child)]
		if fits > 0 && (e.fewest == 0 || fits < e.fewest) {
			e.fewest = fits
		}
		e.most = max(e.most, fits)
	}
	return *e
}

// shapeKey identifies asks with equal pods.
func (a *Ask) shapeKey(filterKey, extra string) string {
	var k keyText
	k.text(filterKey)
	k.text(extra)
	k.amounts(a.PerPod)
	for _, p := range a.HostPorts {
		k.text(p.IP)
		k.text(string(p.Protocol))
		k.number(int64(p.Port))
	}
	k.text(a.ExclusiveKey)
	return string(k)
}

// tally returns the tally of an ask, up to date.
func (m *Map) tally(a *Ask, l *layout, on Ledger, sparing bool) *tally {
	filterKey := a.filterKey()
	key := tallyKey{a.shapeKey(filterKey, l.extra), on, sparing}
	t := m.tallies.byKey[key]
	if t == nil || t.layout != l {
		m.tallies.evictOldest()
		t = &tally{ledger: on, sparing: sparing, takes: m.vector(a.PerPod), ports: a.HostPorts, exclusive: a.ExclusiveKey, layout: l, filter: m.filter(a, filterKey)}
		m.tallies.byKey[key] = t
		m.recount(t)
	}
	m.tallies.uses++
	t.used = m.tallies.uses
	m.refresh(t)
	return t
}

// count updates the tally of a want.
func (m *Map) count(w *want, on Ledger) {
	if w.tally == nil {
		w.tally = m.tally(w.Ask, w.layout, on, w.sparing)
	} else {
		m.refresh(w.tally)
	}
}

// evictOldest removes the tally that was not used for longest, if there are too many.
func (t *tallies) evictOldest() {
	if len(t.byKey) < talliesKept {
		return
	}
	var oldest tallyKey
	least := t.uses + 1
	for key, one := range t.byKey {
		if one.used < least {
			oldest, least = key, one.used
		}
	}
	delete(t.byKey, oldest)
}

// refresh applies the changes since the tally was last read.
func (m *Map) refresh(t *tally) {
	slots, ok := m.log.since(t.read)
	if !ok || len(slots) > len(m.slots) {
		m.recount(t)
		return
	}
	if t.version != t.layout.version {
		for _, slot := range slots {
			m.countNode(t, slot)
		}
		m.sum(t)
	} else {
		for _, slot := range slots {
			if delta := m.countNode(t, slot); delta != 0 {
				if leaf := t.layout.leaf[slot]; leaf != outside {
					t.extremes[leaf].known = false
				}
				for d := t.layout.leaf[slot]; d != outside; d = t.layout.domains[d].parent {
					t.sums[d] += delta
				}
			}
		}
	}
	t.read = m.log.markRead()
}

// Counted returns how many nodes have been counted for pods of shapes that were not counted lately. It only grows: most
// of what searches cost where many workloads differ is this.
func (m *Map) Counted() int { return m.counted }

// recount counts all nodes.
func (m *Map) recount(t *tally) {
	m.counted += len(m.slots)
	for slot := range m.slots {
		m.countNode(t, int32(slot))
	}
	m.sum(t)
	t.read = m.log.markRead()
}

// sum adds up the domains.
func (m *Map) sum(t *tally) {
	l := t.layout
	t.sums = slices.Grow(t.sums[:0], len(l.domains))[:len(l.domains)]
	clear(t.sums)
	t.extremes = slices.Grow(t.extremes[:0], len(l.domains))[:len(l.domains)]
	clear(t.extremes)
	for slot, fits := range t.fits {
		if fits == 0 {
			continue
		}
		for d := l.leaf[slot]; d != outside; d = l.domains[d].parent {
			t.sums[d] += int64(fits)
		}
	}
	t.version = l.version
}

// countNode recounts one node and returns by how many pods its count changed.
func (m *Map) countNode(t *tally, slot int32) int64 {
	for int(slot) >= len(t.fits) {
		t.fits = append(t.fits, 0)
		t.why = append(t.why, foreign)
	}
	fits, why := m.fit(t, slot)
	if was := t.why[slot]; was != why {
		t.countRefusal(was, -1)
		t.countRefusal(why, 1)
		t.why[slot] = why
	}
	delta := int64(fits) - int64(t.fits[slot])
	t.fits[slot] = fits
	return delta
}

// countRefusal adds a number of nodes to the count of a refusal.
func (t *tally) countRefusal(why refusal, nodes int32) {
	if why == foreign {
		return
	}
	t.nodes += nodes
	for int(why) >= len(t.lost) {
		t.lost = append(t.lost, 0)
	}
	t.lost[why] += nodes
}

// fit returns how many pods of the tally's shape fit in a slot and, if none does, why.
func (m *Map) fit(t *tally, slot int32) (int32, refusal) {
	mark := &m.free.marks[slot]
	if mark.version == 0 {
		return 0, foreign
	}
	if why := m.cachedCheck(t.filter, slot, mark.version); why != none {
		return 0, why
	}
	switch {
	case t.layout.leaf[slot] == outside || t.exclusive != "" && !hasLabel(m.slots[slot], t.exclusive):
		return 0, refusedTopology
	case mark.cordoned && t.ledger != empty:
		return 0, refusedCordoned
	case t.sparing && m.slots[slot].hasOtherDevice(t.takes):
		return 0, refusedOther
	case mark.avoided:
		return 0, refusedAvoided
	case mark.ported && len(t.ports) > 0 && !m.slots[slot].portsFree(t.ports, t.ledger):
		return 0, refusedPort
	case t.exclusive != "" && m.blockedByExclusive(m.slots[slot], t.exclusive, t.ledger):
		return 0, refusedExclusive
	}
	fits, bound := m.free.fit(t.takes, t.ledger, slot)
	if fits == 0 {
		return 0, m.refusedFor(bound)
	}
	if len(t.ports) > 0 {
		fits = 1
	}
	return int32(fits), none
}

func hasLabel(n *node, label string) bool {
	_, ok := n.Labels[label]
	return ok
}

// refusedFor returns the refusal for a lack of the resource.
func (m *Map) refusedFor(resource int32) refusal {
	if resource == unknown {
		return refusedUnknown
	}
	for int(resource) >= len(m.refusals.byResource) {
		next := len(m.refusals.byResource)
		m.refusals.byResource = append(m.refusals.byResource, m.refusals.of(textOfLack(m.resources.names[next])))
	}
	return m.refusals.byResource[resource]
}

// textOfLack is the text of a refusal for a lack of the resource.
func textOfLack(resource string) string { return fmt.Sprintf("resource %q", resource) }

// refusalText returns the text of a refusal of pods with these requests.
func (m *Map) refusalText(why refusal, perPod map[string]int64) string {
	if why == refusedUnknown {
		return textOfLack(m.unknownIn(perPod))
	}
	return m.refusals.texts[why]
}
