package place

import (
	"slices"

	"github.com/musterhq/muster/internal/engine/order"
)

// Mended is what Repair found.
type RepairResult struct {
	// Assignments are all places of the workload, those that it keeps included, in the
	// order of its pod sets.
	Assignments []Assignment
	// Moved is how many pods get another place.
	Moved int32
}

// Repair looks for other places for those pods of the workload whose places are no
// good, and changes nothing. They are near the rest: in the same domain of a level that
// all must be in, and of a slice's, of the slice that the pod belongs to. Ranks that
// are not moved keep their nodes. A workload of which no pod is there yet may get other
// places altogether. It is false where there are none.
func (m *Map) Repair(workload order.Key) (RepairResult, bool) {
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
	on := Now
	if h.Promised {
		on = Planned
	}
	ok, astray := false, m.scattered(h)
	m.Try(func() {
		m.Hold(workload, r.kept())
		ok = !astray && r.fillGaps(on)
		if !ok && !r.hasLivePod() {
			m.Hold(workload, nil)
			ok = r.placeAll(on)
		}
	})
	if !ok && astray { // then at least who can be placed nearby: the others are no worse off than before
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

// gather looks for other places for a workload that is astray. Where there are none it keeps those that it has: they are good for its
// pods, and near each other when it was admitted.
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

// repairMost bounds how many pods are looked at one by one: what claims to have more has
// been written by nobody who places pods.
const maxRepairPods = 1 << 20

// size is how many places the holder has.
func (h *holder) size() int32 {
	var out int32
	for i := range h.podSets {
		for _, s := range h.podSets[i].places {
			out = addCount(out, s.count)
		}
	}
	return out
}

// repair is the places of one workload by rank, those that are to be found empty.
type repair struct {
	m     *Map
	h     *holder
	ranks [][]string
	// before are the ranks as they were, moved how many are empty.
	before [][]string
	moved  int32
}

// repair empties the ranks whose places are no good.
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

// kept is the holding without the places that are to be found.
func (r *repair) kept() *Holding {
	out := r.h.Holding
	out.PodSets = slices.Clone(out.PodSets)
	for i := range out.PodSets {
		out.PodSets[i].Nodes = runs(r.ranks[i])
	}
	return &out
}

// ranksOf names the node of each rank.
func ranksOf(places []NodeCount) (ranks []string) {
	for _, at := range places {
		for range at.Count {
			ranks = append(ranks, at.Node)
		}
	}
	return ranks
}

// runs writes ranks as counts of nodes one after the other; empty ones are left out.
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

// anybodyThere reports whether a pod of the workload is on a node that works.
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

func (r *repair) result() RepairResult {
	var out RepairResult
	for i, ranks := range r.ranks {
		out.Assignments = append(out.Assignments, Assignment{PodSet: r.h.PodSets[i].Ask.PodSet, Nodes: runs(ranks)})
		for rank, name := range ranks {
			if name != r.before[i][rank] {
				out.Moved++
			}
		}
	}
	return out
}

// anew looks for places for the whole workload.
func (r *repair) placeAll(on Ledger) bool {
	asks := make([]Ask, len(r.ranks))
	for i := range asks {
		asks[i] = r.h.PodSets[i].Ask
		asks[i].Count = int32(len(r.ranks[i]))
	}
	placed, short := r.m.Find(asks, on)
	if short != nil {
		return false
	}
	for i := range placed {
		r.fill(i, 0, int32(len(r.ranks[i])), placed[i].Nodes, func(int) bool { return true })
	}
	return true
}

// fill gives places to the ranks of a range that want one, in order.
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
