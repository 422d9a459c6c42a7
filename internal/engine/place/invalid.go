package place

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/musterhq/muster/internal/engine/order"
)

// TakeAiling lists the workloads that have places which must be mended, in order: those
// about whom something changed since they were last listed. A promise may ail as well:
// there is nothing to mend then, but room to be found anew. Those who leave never do.
func (m *Map) TakeInvalid() []order.Key {
	var out []order.Key
	for key := range m.toCheck {
		if h := m.holders[key]; h != nil && m.hasInvalid(h) {
			out = append(out, key)
		}
	}
	m.toCheck = sets.New[order.Key]()
	slices.SortFunc(out, order.CompareKeys)
	return out
}

// ails reports whether any place of the holder must be another.
func (m *Map) hasInvalid(h *holder) bool {
	if h.Leaving {
		return false
	}
	for i := range h.podSets {
		if m.invalidOf(h, i).any() {
			return true
		}
	}
	return m.scattered(h)
}

// AilingNodes are the nodes, as places name them, on which places of the workload are no
// good, in the order of names.
func (m *Map) InvalidNodes(workload order.Key) []string {
	var out []string
	for _, set := range m.InvalidPlaces(workload) {
		for _, at := range set.Nodes {
			out = append(out, at.Node)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Ailing are the places of the workload that are no good: for each of its pod sets, in the
// order of the names of nodes.
func (m *Map) InvalidPlaces(workload order.Key) []Assignment {
	h := m.holders[workload]
	if h == nil {
		return nil
	}
	out := make([]Assignment, len(h.podSets))
	for i := range h.podSets {
		out[i].PodSet = h.PodSets[i].Ask.PodSet
		for seats, count := range m.invalidOf(h, i) {
			if count > 0 {
				out[i].Nodes = append(out[i].Nodes, NodeCount{seats.host.name, count})
			}
		}
		slices.SortFunc(out[i].Nodes, func(a, b NodeCount) int { return cmp.Compare(a.Node, b.Node) })
	}
	return out
}

// Without are the places of a pod set that goes on with so many pods fewer, of which none had
// a good place: lost is how many of the places on each node are no good. The last ranks end;
// those of them that have good places leave these to ranks that have none.
func Shrink(places, lost []NodeCount, fewer int32) []NodeCount {
	bad := map[string]int32{}
	for _, at := range lost {
		bad[at.Node] += at.Count
	}
	ranks := ranksOf(places)
	left := len(ranks) - int(fewer)
	for rank, name := range slices.Backward(ranks) {
		if fewer > 0 && bad[name] > 0 {
			bad[name]--
			fewer--
			ranks[rank] = ""
		}
	}
	last := slices.DeleteFunc(slices.Clone(ranks[left:]), func(name string) bool { return name == "" })
	for rank := range ranks[:left] {
		if ranks[rank] == "" {
			ranks[rank], last = last[0], last[1:]
		}
	}
	return runs(ranks[:left])
}

// bad is how many pods of each seat need another place.
type invalidPlaces map[*hostPlaces]int32

func (b invalidPlaces) any() bool {
	for _, count := range b {
		if count > 0 {
			return true
		}
	}
	return false
}

// badOf finds the places of a pod set that are no good. Pods that have ended need none, so that as many of those that nobody is
// in do not matter. Most workloads say it later than their pods, and some only when all of a part of theirs have ended.
func (m *Map) invalidOf(h *holder, podSet int) invalidPlaces {
	set := &h.PodSets[podSet]
	var out invalidPlaces
	var empty int32 // places that nobody is in
	for _, s := range h.podSets[podSet].places {
		if count := m.countInvalid(s); count > 0 {
			if out == nil {
				out = invalidPlaces{}
			}
			out[s] = count
		}
		empty = addCount(empty, s.vacant())
	}
	spare := min(addCount(max(set.Ended, m.endedOf[PodSetKey{h.key, set.Ask.PodSet}]), m.countElsewhere(h, podSet)), empty)
	for _, s := range h.podSets[podSet].places {
		if unneeded := min(spare, out[s], s.vacant()); unneeded > 0 {
			out[s] -= unneeded
			spare -= unneeded
		}
	}
	return out
}

// vacant is how many of the seats have no pod that is or was in them.
func (s *hostPlaces) vacant() int32 {
	if s.node == nil {
		return s.count
	}
	return s.absent
}

// badSeats is how many of the seats need another place: all where the pods are lost,
// else of those without a pod as many as can have none there.
func (m *Map) countInvalid(s *hostPlaces) int32 {
	n := s.node
	if n == nil || n.Failed {
		return s.count
	}
	if s.absent == 0 {
		return 0
	}
	ask := &s.holder.PodSets[s.podSet].Ask
	if n.Cordoned || slices.Contains(ask.Avoid, s.host.name) {
		return s.absent
	}
	if why := m.checkNode(m.filter(ask, ask.filterKey()), n); why != none {
		return s.absent
	}
	return m.crowdedOut(s)
}

// crowdedOut is how many of the seats without a pod would have to go for the node to
// hold what it has to, were they the only ones to go.
func (m *Map) crowdedOut(s *hostPlaces) int32 {
	b := held
	if s.holder.Promised {
		b = planned
	}
	n := s.node
	ask := &s.holder.PodSets[s.podSet].Ask
	if m.portsTaken(n, b, ask.HostPorts) {
		return s.absent
	}
	out := int64(0)
	for _, a := range s.holder.podSets[s.podSet].takes {
		if free := m.free.of(b, a.resource, n.slot); free < 0 {
			short := -(free + 1) // of one less, for it may be the least there is
			out = max(out, short/a.value+1)
		}
	}
	return int32(min(out, int64(s.absent)))
}

// portsTaken reports whether more than one pod takes a port.
func (m *Map) portsTaken(n *node, b book, ports []HostPort) bool {
	for _, want := range ports {
		var takers, own int32
		for taken, counts := range n.ports {
			if taken.conflicts(want) {
				takers = addCount(takers, counts[b])
			}
		}
		for _, port := range ports { // one on all addresses, and one of them, of the same pod
			if port.conflicts(want) {
				own++
			}
		}
		if takers > own {
			return true
		}
	}
	return false
}
