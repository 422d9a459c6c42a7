package place

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/musterhq/muster/internal/engine/order"
)

// TakeInvalid returns, sorted, the workloads with invalid places, which need other ones. Only workloads
// for which something changed since the last call are considered. A promise may be invalid as well: it is
// not repaired, but room for it must be found again. Places of leaving workloads never are.
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

// hasInvalid reports whether any place of the holder must be replaced.
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

// InvalidNodes returns the nodes on which places of the workload are invalid, sorted by name.
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

// InvalidPlaces returns the invalid places of each pod set of the workload, sorted by node name.
func (m *Map) InvalidPlaces(workload order.Key) []Assignment {
	h := m.holders[workload]
	if h == nil {
		return nil
	}
	out := make([]Assignment, len(h.podSets))
	for i := range h.podSets {
		out[i].PodSet = h.PodSets[i].Ask.PodSet
		for places, count := range m.invalidOf(h, i) {
			if count > 0 {
				out[i].Nodes = append(out[i].Nodes, NodeCount{places.host.name, count})
			}
		}
		slices.SortFunc(out[i].Nodes, func(a, b NodeCount) int { return cmp.Compare(a.Node, b.Node) })
	}
	return out
}

// Shrink returns the places of a pod set after it loses as many pods as fewer says, all of which had
// invalid places. lost is the number of invalid places by node. The last ranks end; those of them that
// have valid places hand these to remaining ranks that have none.
func Shrink(places, lost []NodeCount, fewer int32) []NodeCount {
	invalid := map[string]int32{}
	for _, at := range lost {
		invalid[at.Node] += at.Count
	}
	ranks := ranksOf(places)
	left := len(ranks) - int(fewer)
	for rank, name := range slices.Backward(ranks) {
		if fewer > 0 && invalid[name] > 0 {
			invalid[name]--
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

// invalidPlaces is the number of pods that need another place, by the places they have.
type invalidPlaces map[*hostPlaces]int32

func (i invalidPlaces) any() bool {
	for _, count := range i {
		if count > 0 {
			return true
		}
	}
	return false
}

// invalidOf returns the invalid places of a pod set. As many empty places as pods have ended are excused,
// since nothing will use them. It counts the ended pods itself: most Workloads report them later, and some
// only when all pods of a part have ended.
func (m *Map) invalidOf(h *holder, podSet int) invalidPlaces {
	set := &h.PodSets[podSet]
	var out invalidPlaces
	var empty int32 // places without a pod
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

// vacant returns the number of places without a pod.
func (h *hostPlaces) vacant() int32 {
	if h.node == nil {
		return h.count
	}
	return h.absent
}

// countInvalid returns how many of the places must be replaced: all of them if the node has lost its pods,
// otherwise those without a pod that no pod can use.
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
	return max(m.crowdedOut(s), min(s.absent, s.beyondLimit()))
}

// beyondLimit returns by how many pods the places of the workload on the host exceed what kube-scheduler accepted there.
func (h *hostPlaces) beyondLimit() int32 {
	for _, limit := range h.holder.PodSets[h.podSet].Ask.Limits {
		if limit.Node != h.host.name {
			continue
		}
		var sum int32
		for i := range h.holder.podSets {
			if at := h.holder.podSets[i].at(h.host.name); at != nil {
				sum = addCount(sum, at.count)
			}
		}
		return max(0, sum-limit.Count)
	}
	return 0
}

// crowdedOut returns how many of the places without a pod would have to move, if no other places did, for
// the node not to be overcommitted.
func (m *Map) crowdedOut(s *hostPlaces) int32 {
	b := held
	if s.holder.Promised {
		b = planned
	}
	n := s.node
	ask := &s.holder.PodSets[s.podSet].Ask
	if n.portsTaken(b, ask.HostPorts) {
		return s.absent
	}
	out := int64(0)
	for _, a := range s.holder.podSets[s.podSet].takes {
		if free := m.free.of(b, a.resource, n.slot); free < 0 {
			short := -(free + 1) // minus one: the negation of the smallest int64 overflows
			out = max(out, short/a.value+1)
		}
	}
	return int32(min(out, int64(s.absent)))
}
