package place

import (
	"slices"

	"github.com/musterhq/muster/internal/engine/order"
)

// RepairResult is the result of Repair.
type RepairResult struct {
	// Assignments holds all places of the workload, kept ones included, in the order of its pod sets.
	Assignments []Assignment
	// Moved is the number of pods that get another place, and Gained has these places.
	Moved  int32
	Gained []Assignment
}

// Repair finds other places for the pods of the workload whose places are invalid, and changes nothing.
// The new places are near the rest: in the domain of a required level, and in that of the slice that a pod
// belongs to. Ranks that are not moved keep their nodes. A workload none of whose pods is present may get
// other places for all. It returns false if there are none.
func (m *Map) Repair(workload order.Key) (RepairResult, bool) { return m.repairOn(workload, Now) }

// RepairOnceGone is Repair once all that is leaving is gone, with what is promised to others kept for them.
func (m *Map) RepairOnceGone(workload order.Key) (RepairResult, bool) {
	return m.repairOn(workload, Planned)
}

func (m *Map) repairOn(workload order.Key, on Ledger) (RepairResult, bool) {
	h := m.holders[workload]
	if h == nil {
		return RepairResult{}, true
	}
	if h.size() > maxRepairPods {
		return RepairResult{}, !m.hasInvalid(h)
	}
	r := m.repair(h)
	if r.moved == 0 {
		return m.gather(r), true
	}
	m.boundLayouts()
	if h.Promised {
		on = Planned
	}
	ok, scattered := false, m.scattered(h)
	m.Try(func() {
		m.Hold(workload, r.kept())
		ok = !scattered && r.fillGaps(on)
		if !ok && !r.hasLivePod() {
			m.Hold(workload, nil)
			ok = r.placeAll(on)
		}
	})
	if !ok && scattered { // at least replace the invalid places; the others stay as scattered as they are
		m.Try(func() {
			m.Hold(workload, r.kept())
			ok = r.fillGaps(on)
		})
	}
	if !ok {
		return RepairResult{}, false
	}
	return r.result(), true
}

// gather finds new places for a workload that is scattered. If there are none it keeps the ones that it
// has: its pods can use them, and they were near each other when it was admitted.
func (m *Map) gather(r *repair) RepairResult {
	if !m.scattered(r.h) {
		return r.result()
	}
	m.boundLayouts()
	found := false
	m.Try(func() {
		m.Hold(r.h.key, nil)
		found = r.placeAll(Now)
	})
	if !found {
		return RepairResult{}
	}
	return r.result()
}

// maxRepairPods limits the number of pods for which ranks are listed one by one. Nothing that places pods
// writes more.
const maxRepairPods = 1 << 20

// size returns the number of places of the holder.
func (h *holder) size() int32 {
	var out int32
	for i := range h.podSets {
		for _, s := range h.podSets[i].places {
			out = addCount(out, s.count)
		}
	}
	return out
}

// repair holds the places of one workload by rank; ranks that need a place are empty.
type repair struct {
	m     *Map
	h     *holder
	ranks [][]string
	// before holds the ranks before the repair, moved the number of ranks that were emptied.
	before [][]string
	moved  int32
}

// repair lists the ranks of the holder and empties those with invalid places.
func (m *Map) repair(h *holder) *repair {
	r := &repair{m: m, h: h}
	for i := range h.PodSets {
		ranks := ranksOf(h.PodSets[i].Nodes)
		r.before = append(r.before, slices.Clone(ranks))
		if !h.Leaving {
			r.moved += m.vacate(h, i, ranks)
		}
		r.ranks = append(r.ranks, ranks)
	}
	return r
}

// kept returns the holding without the empty ranks.
func (r *repair) kept() *Holding {
	out := r.h.Holding
	out.PodSets = slices.Clone(out.PodSets)
	for i := range out.PodSets {
		out.PodSets[i].Nodes = runs(r.ranks[i])
	}
	return &out
}

// ranksOf returns the node of each rank.
func ranksOf(places []NodeCount) (ranks []string) {
	for _, at := range places {
		for range at.Count {
			ranks = append(ranks, at.Node)
		}
	}
	return ranks
}

// runs converts ranks to counts of consecutive equal nodes, skipping empty ranks.
func runs(ranks []string) []NodeCount {
	var out []NodeCount
	for _, name := range ranks {
		if last := len(out) - 1; last >= 0 && out[last].Node == name {
			out[last].Count++
		} else if name != "" {
			out = append(out, NodeCount{name, 1})
		}
	}
	return out
}

// hasLivePod reports whether a pod of the workload is on a node that exists and has not failed.
func (r *repair) hasLivePod() bool {
	c := r.m.podsOf[r.h.key]
	if c == nil {
		return false
	}
	for _, p := range c.pods {
		if p.node.exists && !p.node.Failed {
			return true
		}
	}
	return false
}

// result compares the ranks with those before the repair.
func (r *repair) result() RepairResult {
	var out RepairResult
	for i, ranks := range r.ranks {
		set := r.h.PodSets[i].Ask.PodSet
		out.Assignments = append(out.Assignments, Assignment{PodSet: set, Nodes: runs(ranks)})
		gained := slices.Clone(ranks)
		for rank, name := range ranks {
			if name == r.before[i][rank] {
				gained[rank] = ""
			} else {
				out.Moved++
			}
		}
		if nodes := runs(gained); len(nodes) > 0 {
			out.Gained = append(out.Gained, Assignment{PodSet: set, Nodes: nodes})
		}
	}
	return out
}

// placeAll finds places for the whole workload from scratch.
func (r *repair) placeAll(on Ledger) bool {
	asks := make([]Ask, len(r.ranks))
	for i := range asks {
		asks[i] = r.h.PodSets[i].Ask
		asks[i].Count = int32(len(r.ranks[i]))
	}
	placed, ok := r.m.TryFind(asks, on)
	if !ok {
		return false
	}
	for i := range placed {
		r.fill(i, 0, int32(len(r.ranks[i])), placed[i].Nodes, func(int) bool { return true })
	}
	return true
}

// fill assigns nodes, in order, to the ranks of a range that want one.
func (r *repair) fill(podSet int, from, to int32, nodes []NodeCount, wants func(rank int) bool) {
	for rank := int(from); rank < int(to); rank++ {
		if !wants(rank) {
			continue
		}
		for len(nodes) > 0 && nodes[0].Count == 0 {
			nodes = nodes[1:]
		}
		if len(nodes) == 0 {
			return
		}
		r.ranks[podSet][rank] = nodes[0].Node
		nodes[0].Count--
	}
}
