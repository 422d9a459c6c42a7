package place

import (
	"slices"
	"strings"

	"github.com/musterhq/muster/internal/engine/order"
)

// pod is a Pod and what it takes.
type pod struct {
	key       order.Key
	node      *node
	takes     vector
	ports     []HostPort
	exclusive string
	workload  order.Key
	podSet    string
	part      Part
	resident  bool
	// goes tells that another comes for it.
	terminating bool
}

// crew is the pods of one workload, wherever they are.
type workloadPods struct {
	pods map[order.Key]*pod
	// present is how many there are of a pod set on a node, by its object's name.
	present map[podSetOnNode]int32
	// going is how many of those go, standing how many of a pod set are anywhere on nodes that stand and do not go.
	terminating map[podSetOnNode]int32
	live        map[string]int32
}

type podSetOnNode struct{ podSet, node string }

// Crew are the pods of a workload's pod set.
type PodSetKey struct {
	Workload order.Key
	PodSet   string
}

// SetPod says that a pod is bound to a node, or changed there.
func (m *Map) SetPod(set Pod) {
	m.forgetEnded(set.Key)
	p := &pod{key: set.Key, node: m.node(set.Node), takes: m.vector(set.Requests), ports: set.HostPorts, exclusive: set.ExclusiveKey,
		workload: set.Workload, podSet: set.PodSet, part: set.Part, resident: set.Resident, terminating: set.Terminating}
	old := m.pods[set.Key]
	if old != nil && old.equal(p) {
		return
	}
	m.knowExclusive(p.exclusive)
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

// DeletePod says that a pod is gone, or has ended and is needed again. It reports whether it was there.
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

// EndPod says that a pod has ended well: it takes nothing any more, and nobody comes for it, whether its workload says so by now
// or not. It reports whether that is news.
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

// forgetEnded has a pod that has ended count no more. It reports whether it did.
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

// There is where pods of a pod set are, on nodes that have the labels and have not failed, in
// the order of names.
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

// takeOut takes back all that follows from a pod.
func (m *Map) removePod(p *pod) {
	delete(m.pods, p.key)
	delete(p.node.pods, p.key)
	m.chargePod(p, -1)
	m.countPod(p, -1)
}

// podsChanged tells those whom it concerns that the pod came or went.
func (m *Map) podsChanged(p *pod) {
	m.updatePlacesOf(p)
	m.unpinnedChanged(p)
	if m.podsOf[p.workload] == nil && m.holders[p.workload] != nil && m.trial == 0 {
		m.toCheck.Insert(p.workload) // wherever the last of them was: now all may go where they are together
	}
	m.settle(p.node)
	m.dropUnknown(p.node)
}

func (p *pod) equal(other *pod) bool {
	return p.node == other.node && p.workload == other.workload && p.podSet == other.podSet && p.part == other.part && p.exclusive == other.exclusive &&
		p.resident == other.resident && p.terminating == other.terminating && slices.Equal(p.takes, other.takes) && slices.Equal(p.ports, other.ports)
}

// chargePod charges what a pod takes to the books that count it.
func (m *Map) chargePod(p *pod, times int32) {
	m.charge(p.node, held, p.takes, p.ports, p.exclusive, times)
	if h := m.holders[p.workload]; h == nil || !h.podsLeaving() {
		m.charge(p.node, planned, p.takes, p.ports, p.exclusive, times)
	}
	if p.resident {
		m.charge(p.node, resident, p.takes, p.ports, "", times)
	}
}

// charge counts so many equal pods in a book of a node.
func (m *Map) charge(n *node, b book, takes vector, ports []HostPort, exclusive string, pods int32) {
	n.capacity.charge(b, takes, pods)
	if len(ports) > 0 {
		n.chargePorts(b, ports, pods)
	}
	if exclusive != "" {
		m.chargeExclusive(n, b, exclusive, pods)
	}
}

// attend counts a pod among those of its workload.
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

// countIn adds to a count, of which none is kept that is zero.
func countIn[K comparable](counts map[K]int32, of K, times int32) {
	if counts[of] += times; counts[of] == 0 {
		delete(counts, of)
	}
}

// here is how many pods of a pod set are on the nodes of a host; lost ones are none.
func (c *workloadPods) onHost(podSet string, h *host) int32 {
	if c == nil {
		return 0
	}
	var count int32
	for _, n := range h.nodes {
		count += c.present[podSetOnNode{podSet, n.Name}]
	}
	return count
}

// reseatFor has the places of the pod's pod set on its node counted anew.
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
		if s.node != nil && s.node != p.node { // another node of the same name
			m.settle(s.node)
		}
		if m.trial == 0 {
			m.toCheck.Insert(h.key)
		}
	}
}

// LabelOf is the value of a label of the node that places name so; known is false if there
// is no such node, or it has no such label.
func (m *Map) LabelOf(host, label string) (value string, known bool) {
	h := m.hosts[host]
	if h == nil || len(h.nodes) == 0 {
		return "", false
	}
	value, known = h.nodes[0].Labels[label]
	return value, known
}
