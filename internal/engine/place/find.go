package place

import (
	"cmp"
	"slices"

	"github.com/musterhq/muster/internal/engine/order"
)

// search is one search for places.
type search struct {
	m       *Map
	on      Ledger
	podSets []string
	wants   []*want
	groups  []*askGroup
	// charged holds the places found so far, which count as used.
	charged []placement
	// found holds the places of all asks.
	found   []placement
	avoided []*node
	// bounding is nil if there are no bounds between pods.
	bounding *bounding
}

// placement holds the places of one ask.
type placement struct {
	want  *want
	nodes []slotCount
}

// slotCount is a number of pods on the node in a slot.
type slotCount struct{ slot, pods int32 }

// Find searches places for all asks together, all or nothing, and changes nothing. It returns the
// assignments in the order of the asks, or why there are none. Places must hold for the flavors of all
// asks. If the asks are few or alike the search is exact; for large asks that differ much it may miss
// places that exist.
func (m *Map) Find(asks []Ask, on Ledger) ([]Assignment, *Shortfall) {
	f, wrong := m.read(asks, on)
	if wrong != nil {
		return nil, wrong
	}
	defer m.close(f)
	if m.search(f) {
		return m.assignments(f), nil
	}
	return nil, m.shortfall(f)
}

// TryFind is Find for callers that need not know why there are no places, which often takes longer to tell than
// the search itself.
func (m *Map) TryFind(asks []Ask, on Ledger) (found []Assignment, ok bool) {
	f, wrong := m.read(asks, on)
	if wrong != nil {
		return nil, false
	}
	defer m.close(f)
	if !m.search(f) {
		return nil, false
	}
	return m.assignments(f), true
}

// Fits reports whether Find finds places.
func (m *Map) Fits(asks []Ask, on Ledger) bool {
	f, wrong := m.read(asks, on)
	if wrong != nil {
		return false
	}
	defer m.close(f)
	return m.search(f)
}

// EverFits reports whether the asks could be placed on the present nodes if all work had ended and no node
// were cordoned. Nodes that they avoid count: kube-scheduler may accept them later.
func (m *Map) EverFits(asks []Ask) bool {
	asks = slices.Clone(asks)
	for i := range asks {
		asks[i].Avoid, asks[i].Limits = nil, nil
	}
	return m.Fits(asks, empty)
}

// FitsWhenIdle reports whether the asks could be placed on the present nodes, other than those that they
// avoid, if all work had ended.
func (m *Map) FitsWhenIdle(asks []Ask) bool { return m.Fits(asks, idle) }

// read resolves asks and opens a search, which the caller must close.
func (m *Map) read(asks []Ask, on Ledger) (*search, *Shortfall) {
	m.boundLayouts()
	return m.readWith(asks, m.extras(asks), on)
}

// layoutsKept bounds the number of layouts that follow the nodes: tenants may name any label for exclusive
// placement.
const layoutsKept = 32

// boundLayouts drops all layouts if there are too many, and labels of exclusive placement that nothing
// uses. Domains of dropped layouts become meaningless.
func (m *Map) boundLayouts() {
	m.boundExclusive()
	if len(m.layouts) > layoutsKept {
		clear(m.layouts)
	}
}

// readWith is read for asks whose layouts need the extra labels. It keeps all layouts, so that domains
// that the caller has stay valid.
func (m *Map) readWith(asks []Ask, extra []string, on Ledger) (*search, *Shortfall) {
	f := &search{m: m, on: on}
	for i := range asks {
		f.podSets = append(f.podSets, asks[i].PodSet)
		w, wrong := m.want(&asks[i], i, extra[i])
		if wrong != "" {
			return nil, &Shortfall{PodSet: asks[i].PodSet, Flavor: asks[i].Flavor, Topology: m.flavors[asks[i].Flavor].Topology,
				Count: asks[i].Count, Mistake: string(wrong)}
		}
		if w.Count > 0 {
			f.wants = append(f.wants, w)
		}
	}
	f.groups = groupsOf(f.wants)
	for _, p := range f.groups {
		if w, wrong := p.disagrees(); w != nil {
			return nil, &Shortfall{PodSet: w.PodSet, Flavor: w.Flavor, Topology: m.flavors[w.Flavor].Topology, Count: w.Count,
				Mistake: "pod sets of group " + w.Group + " " + wrong}
		}
	}
	m.bind(f)
	f.groups = m.joined(f, f.groups)
	m.trial++
	m.avoid(f)
	return f, nil
}

// close takes back everything that a search changed.
func (m *Map) close(f *search) {
	m.takeBack(f, 0)
	if f.bounding != nil {
		m.counted += f.bounding.looked / looksPerNode
	}
	m.readmit(f.avoided)
	m.trial--
}

// avoid excludes the nodes that any of the asks avoids.
func (m *Map) avoid(f *search) {
	for _, w := range f.wants {
		for _, name := range w.Avoid {
			h := m.hosts[name]
			if h == nil {
				continue
			}
			for _, n := range h.nodes {
				m.keepOff(f, n)
			}
		}
	}
}

// keepOff excludes a node from the search until readmit.
func (m *Map) keepOff(f *search, n *node) {
	if !n.avoided {
		n.avoided = true
		m.free.update(n)
		m.log.add(n.slot)
		f.avoided = append(f.avoided, n)
	}
}

// readmit undoes keepOff.
func (m *Map) readmit(nodes []*node) {
	for _, n := range nodes {
		n.avoided = false
		m.free.update(n)
		m.log.add(n.slot)
	}
}

// extras returns the label that each ask's layout needs beside those of its topology, if any. Asks that
// get one domain share one layout.
func (m *Map) extras(asks []Ask) []string {
	out := make([]string, len(asks))
	if len(asks) == 1 {
		out[0] = m.extraOf(&asks[0])
		return out
	}
	together := map[string]bool{}
	for i := range asks {
		together[asks[i].Group] = together[asks[i].Group] || asks[i].Group != "" && asks[i].Level != ""
	}
	for i := range asks {
		out[i] = m.extraOf(&asks[i])
		for j := range asks {
			if out[i] == "" && together[asks[i].Group] && asks[j].Group == asks[i].Group {
				out[i] = m.extraOf(&asks[j])
			}
		}
	}
	return out
}

// groupsOf returns the groups of asks in order. Asks with the same Group are joined if any of them has a
// level.
func groupsOf(wants []*want) []*askGroup {
	var out []*askGroup
	if len(wants) == 1 {
		return append(out, groupOfOne(wants[0]))
	}
	groups, together := map[string]*askGroup{}, map[string]bool{}
	for _, w := range wants {
		together[w.Group] = together[w.Group] || w.Group != "" && w.Level != ""
	}
	for _, w := range wants {
		p := groups[w.Group]
		if p == nil || !together[w.Group] {
			p = &askGroup{}
			out = append(out, p)
			groups[w.Group] = p
		}
		p.wants = append(p.wants, w)
		if w.Level != "" && (!p.hasLevel || w.Mandatory && !p.mandatory) {
			p.hasLevel, p.mandatory, p.depth = true, w.Mandatory, w.depth
		}
	}
	return out
}

// groupOfOne returns the group of a single ask.
func groupOfOne(w *want) *askGroup {
	return &askGroup{wants: []*want{w}, depth: w.depth, hasLevel: w.Level != "", mandatory: w.Level != "" && w.Mandatory}
}

// search looks for places of all groups together, at first away from areas with several avoided nodes.
func (m *Map) search(f *search) bool { return m.searchOffAvoided(f) || m.searchAll(f) }

// searchAll searches all nodes that are not avoided: group after group, and then exhaustively.
func (m *Map) searchAll(f *search) bool {
	return m.searchSparing(f) || (len(f.wants) > 1 || !f.isExact()) && m.exhaust(f)
}

// searchSparing first searches nodes without devices that the asks do not use, to leave those to pods that
// need them, then all nodes.
func (m *Map) searchSparing(f *search) bool {
	if m.spareDevices(f) && m.searchInOrders(f) {
		return true
	}
	for _, w := range f.wants {
		if w.sparing {
			w.sparing, w.tally = false, nil
		}
	}
	return m.searchInOrders(f)
}

// searchInOrders places the hardest asks first, and then tries other orders.
func (m *Map) searchInOrders(f *search) bool {
	for _, w := range f.wants {
		m.count(w, f.on)
		if !m.fitsAlone(f, w) {
			return false
		}
	}
	m.byHardness(f)
	for turn := range orders(f) {
		if turn > 0 {
			f.reorder(turn)
		}
		if f.bounding == nil && m.attempt(f) || f.bounding != nil && f.bounding.divisions(func() bool { return m.attempt(f) }) {
			return true
		}
		if f.bounding.exhausted() {
			return false
		}
	}
	return false
}

// attempt places all groups in their order.
func (m *Map) attempt(f *search) bool {
	for _, p := range f.groups {
		if !m.placeGroup(f, p) {
			m.takeBack(f, 0)
			return false
		}
	}
	if !f.bounding.keepsBounds() {
		m.takeBack(f, 0)
		return false
	}
	f.found = f.charged
	return true
}

// fitsAlone reports whether an ask would have places if it were the only one.
func (m *Map) fitsAlone(f *search, w *want) bool {
	if w.tally.sums[0] < int64(w.Count) {
		return false
	}
	if f.bounding != nil { // with shares, domains may hold more; whether each can have its share is not looked at
		return f.bounding.divisions(func() bool { return m.hasRoom(f, w) })
	}
	return m.hasRoom(f, w)
}

func (s *search) groupOf(w *want) *askGroup {
	for _, p := range s.groups {
		if slices.Contains(p.wants, w) {
			return p
		}
	}
	return nil
}

// byHardness sorts groups, and the asks in each: exclusive ones first, then those that need one domain,
// then those that take the largest share of what is free.
func (m *Map) byHardness(f *search) {
	harder := func(a, b *want) int {
		return cmp.Or(
			order.TrueFirst(a.exclusiveDepth >= 0, b.exclusiveDepth >= 0),
			order.TrueFirst(a.Level != "" && a.Mandatory, b.Level != "" && b.Mandatory),
			cmp.Compare(share(b), share(a)),
			cmp.Compare(a.index, b.index),
		)
	}
	for _, p := range f.groups {
		slices.SortStableFunc(p.wants, harder)
	}
	slices.SortStableFunc(f.groups, func(a, b *askGroup) int { return harder(a.wants[0], b.wants[0]) })
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
	for _, p := range s.groups {
		slices.Reverse(p.wants)
	}
	if turn%2 == 0 && len(s.groups) > 1 {
		s.groups = append(s.groups[1:], s.groups[0])
	}
}

// chargeAsk records the places of an ask and charges them.
func (m *Map) chargeAsk(f *search, w *want, nodes []slotCount) {
	f.charged = append(f.charged, placement{w, nodes})
	m.countPlaced(f.bounding, w, nodes, 1)
	f.bounding.await(w, -1)
	if len(f.charged) < len(f.wants) { // charges of the last ask would not be read
		m.chargeFound(f, w, nodes, 1)
	}
}

// takeBack removes all charges but the first keep ones.
func (m *Map) takeBack(f *search, keep int) {
	for i := len(f.charged) - 1; i >= keep; i-- {
		m.countPlaced(f.bounding, f.charged[i].want, f.charged[i].nodes, -1)
		f.bounding.await(f.charged[i].want, 1)
		if i < len(f.wants)-1 {
			m.chargeFound(f, f.charged[i].want, f.charged[i].nodes, -1)
		}
	}
	f.charged = f.charged[:keep]
}

// chargeFound charges places in the books of the search's ledger; times -1 takes them back.
func (m *Map) chargeFound(f *search, w *want, nodes []slotCount, times int32) {
	for _, c := range nodes {
		n := m.slots[c.slot]
		for _, b := range read[f.on] {
			m.charge(n, b, w.takes, w.HostPorts, w.ExclusiveKey, times*c.pods)
		}
		m.settle(n)
	}
}

// assignments returns the places found, by ask.
func (m *Map) assignments(f *search) []Assignment {
	out := make([]Assignment, len(f.podSets))
	for i, name := range f.podSets {
		out[i].PodSet = name
	}
	for _, c := range f.found {
		a := &out[c.want.index]
		a.Nodes = make([]NodeCount, 0, len(c.nodes))
		for _, on := range c.nodes {
			a.Nodes = append(a.Nodes, NodeCount{m.slots[on.slot].host.name, on.pods})
		}
	}
	return out
}
