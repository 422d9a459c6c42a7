package place

import (
	"maps"
	"slices"
	"strings"

	"github.com/musterhq/muster/internal/engine/order"
)

// pod is a Pod in the form in which it is charged.
type pod struct {
	key   order.Key
	node  *node
	takes vector
	// others are the amounts of resources that no node has.
	others map[string]int64
	ports  []HostPort
	// exclusive is the label that the pod names, and counted the one by which it is charged: see exclusiveBy.
	exclusive, counted string
	workload           order.Key
	podSet             string
	part               Part
	// rank is the rank within the part, negative if the pod has none.
	rank     int32
	resident bool
	// terminating: see Pod.Terminating.
	terminating bool
}

// workloadPods holds the pods of one workload, on all nodes.
type workloadPods struct {
	pods map[order.Key]*pod
	// present counts the pods of a pod set by node.
	present map[podSetOnNode]int32
	// terminating counts those of present that are terminating; live counts, by pod set, the pods that are
	// not terminating and are on a node that is up.
	terminating map[podSetOnNode]int32
	live        map[string]int32
}

// podSetOnNode names a pod set and a node, by the node's metadata.name.
type podSetOnNode struct{ podSet, node string }

// PodSetKey identifies a pod set of a workload.
type PodSetKey struct {
	Workload order.Key
	PodSet   string
}

// SetPod adds or updates a pod that is bound to a node.
func (m *Map) SetPod(set Pod) {
	m.forgetEnded(set.Key)
	takes, others := m.charges(set.Requests)
	p := &pod{key: set.Key, node: m.node(set.Node), takes: takes, others: others, ports: set.HostPorts, exclusive: set.ExclusiveKey,
		workload: set.Workload, podSet: set.PodSet, part: set.Part, rank: -1, resident: set.Resident, terminating: set.Terminating}
	if set.HasRank {
		p.rank = set.Rank
	}
	old := m.pods[set.Key]
	if old != nil && old.equal(p) {
		return
	}
	if old != nil {
		m.removePod(old)
	}
	m.pods[p.key] = p
	if p.node.pods == nil {
		p.node.pods = map[order.Key]*pod{}
	}
	p.node.pods[p.key] = p
	m.chargePod(p, 1)
	m.countPod(p, 1)
	if old != nil {
		m.podsChanged(old)
	}
	m.podsChanged(p)
}

// DeletePod removes a pod that is gone, or that has ended and will be replaced. It reports whether the pod
// was known.
func (m *Map) DeletePod(key order.Key) bool {
	remembered := m.forgetEnded(key)
	p := m.pods[key]
	if p == nil {
		return remembered
	}
	m.removePod(p)
	m.podsChanged(p)
	return true
}

// EndPod records that a pod has succeeded: it uses nothing any more and will not be replaced, whether or
// not its Workload says so yet. It reports whether this is new.
func (m *Map) EndPod(key order.Key, of PodSetKey) bool {
	if m.ended[key] == of {
		return false
	}
	m.forgetEnded(key)
	m.ended[key] = of
	m.endedOf[of]++
	if p := m.pods[key]; p != nil {
		m.removePod(p)
		m.podsChanged(p)
	}
	return true
}

// forgetEnded removes a pod from those that have ended, and reports whether it was one.
func (m *Map) forgetEnded(key order.Key) bool {
	of, ok := m.ended[key]
	if !ok {
		return false
	}
	delete(m.ended, key)
	if m.endedOf[of]--; m.endedOf[of] == 0 {
		delete(m.endedOf, of)
	}
	if m.holders[of.Workload] != nil {
		m.toCheck.Insert(of.Workload)
	}
	return true
}

// PodNodes returns the nodes on which pods of the pod set are, sorted by name: only nodes that have the
// labels and have not failed.
func (m *Map) PodNodes(workload order.Key, podSet string, labels map[string]string) []NodeCount {
	c := m.podsOf[workload]
	if c == nil {
		return nil
	}
	var out []NodeCount
	for at, count := range c.present {
		if n := m.nodes[at.node]; at.podSet == podSet && n != nil && n.host != nil && !n.Failed && within(labels, n.Labels) {
			out = append(out, NodeCount{n.host.name, count})
		}
	}
	slices.SortFunc(out, func(a, b NodeCount) int { return strings.Compare(a.Node, b.Node) })
	return out
}

// PodsOn returns how many pods of the workload are on the node that places call host.
func (m *Map) PodsOn(workload order.Key, host string) (pods int32) {
	h, c := m.hosts[host], m.podsOf[workload]
	if h == nil || c == nil {
		return 0
	}
	for _, n := range h.nodes {
		for _, p := range n.pods {
			if p.workload == workload {
				pods++
			}
		}
	}
	return pods
}

// removePod takes back everything that was counted for a pod.
func (m *Map) removePod(p *pod) {
	delete(m.pods, p.key)
	delete(p.node.pods, p.key)
	m.chargePod(p, -1)
	m.countPod(p, -1)
}

// podsChanged updates the places of the pod's workload after the pod was added or removed.
func (m *Map) podsChanged(p *pod) {
	m.updatePlacesOf(p)
	m.unpinnedChanged(p)
	if m.podsOf[p.workload] == nil && m.holders[p.workload] != nil && m.trial == 0 {
		m.toCheck.Insert(p.workload) // the last pod is gone, so scattered places may be found again as a whole
	}
	m.settle(p.node)
	m.dropUnknown(p.node)
}

func (p *pod) equal(other *pod) bool {
	return p.node == other.node && p.workload == other.workload && p.podSet == other.podSet && p.part == other.part && p.rank == other.rank && p.exclusive == other.exclusive &&
		p.resident == other.resident && p.terminating == other.terminating && slices.Equal(p.takes, other.takes) && maps.Equal(p.others, other.others) && slices.Equal(p.ports, other.ports)
}

// chargePod charges the requests of a pod to the books that count it.
func (m *Map) chargePod(p *pod, times int32) {
	if times > 0 {
		p.counted = m.exclusiveBy(p)
	}
	m.charge(p.node, held, p.takes, p.ports, p.counted, times)
	if m.isPlanned(p) {
		m.charge(p.node, planned, p.takes, p.ports, p.counted, times)
	}
	if p.resident {
		m.residentChanges++
		m.charge(p.node, resident, p.takes, p.ports, "", times)
	}
}

// isPlanned reports whether the planned book counts the pod: it does not if the pod is on its way out.
func (m *Map) isPlanned(p *pod) bool {
	h := m.holders[p.workload]
	return h == nil || !h.podsLeaving()
}

// charge counts a number of equal pods in a book of the node; a negative number takes them back.
func (m *Map) charge(n *node, b book, takes vector, ports []HostPort, exclusive string, pods int32) {
	n.capacity.charge(b, takes, pods)
	if len(ports) > 0 {
		n.chargePorts(b, ports, pods)
	}
	if exclusive != "" {
		m.chargeExclusive(n, b, exclusive, pods)
	}
}

// countPod adds a pod to the counts of its workload, or removes it if times is -1.
func (m *Map) countPod(p *pod, times int32) {
	if p.workload == (order.Key{}) {
		return
	}
	c := m.podsOf[p.workload]
	if c == nil {
		c = &workloadPods{pods: map[order.Key]*pod{}, present: map[podSetOnNode]int32{}, terminating: map[podSetOnNode]int32{}, live: map[string]int32{}}
		m.podsOf[p.workload] = c
	}
	at := podSetOnNode{p.podSet, p.node.Name}
	countIn(c.present, at, times)
	if p.terminating {
		countIn(c.terminating, at, times)
	} else if p.node.up() {
		countIn(c.live, p.podSet, times)
	}
	if times > 0 {
		c.pods[p.key] = p
	} else {
		delete(c.pods, p.key)
	}
	if len(c.pods) == 0 && len(c.present) == 0 {
		delete(m.podsOf, p.workload)
	}
}

// countIn adds to a count, and deletes counts that become zero.
func countIn[K comparable](counts map[K]int32, of K, times int32) {
	if counts[of] += times; counts[of] == 0 {
		delete(counts, of)
	}
}

// onHost returns the number of pods of a pod set on the nodes of a host. Pods whose node no longer exists
// are not counted.
func (w *workloadPods) onHost(podSet string, h *host) int32 {
	if w == nil {
		return 0
	}
	var count int32
	for _, n := range h.nodes {
		count += w.present[podSetOnNode{podSet, n.Name}]
	}
	return count
}

// updatePlacesOf recounts the places of the pod's pod set on its host.
func (m *Map) updatePlacesOf(p *pod) {
	if p.node.host == nil || p.workload == (order.Key{}) {
		return
	}
	h := m.holders[p.workload]
	if h == nil {
		return
	}
	if s := h.at(p.podSet, p.node.host.name); s != nil {
		m.updatePlaces(s)
		if s.node != nil && s.node != p.node { // another node with the same hostname
			m.settle(s.node)
		}
		if m.trial == 0 {
			m.toCheck.Insert(h.key)
		}
	}
}

// IsLost reports whether there is no node of the name, or the node has lost its pods.
func (m *Map) IsLost(host string) bool {
	h := m.hosts[host]
	return h == nil || len(h.nodes) == 0 || h.nodes[0].Failed
}

// LabelOf returns the value of a label of the node that places call host; known is false if there is no
// such node or it lacks the label.
func (m *Map) LabelOf(host, label string) (value string, known bool) {
	h := m.hosts[host]
	if h == nil || len(h.nodes) == 0 {
		return "", false
	}
	value, known = h.nodes[0].Labels[label]
	return value, known
}
