package place

import (
	"cmp"
	"maps"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/musterhq/muster/internal/engine/order"
)

// cap32 bounds how many pods are said to fit on a node, so that sums over all nodes
// do not overflow.
const cap32 = math.MaxInt32

// node is a Node, or the name of one that pods are bound to.
type node struct {
	Node
	exists bool
	slot   int32
	host   *host
	// version changes with what filters look at.
	version  uint64
	capacity capacity
	pods     map[order.Key]*pod
	// ports are how many pods of each book take each port, exclusive how many are
	// exclusive by each label; portsChanged, portsFreed and, for those of pods that
	// stay, portsKept tell what settle must say.
	ports                               map[HostPort]*[books]int32
	exclusive                           map[string]*[books]int32
	portsChanged, portsFreed, portsKept bool
	// devices are the resources beyond Kubernetes' own that it has.
	devices []int32
	// avoided while places are looked for of somebody for whom it is no good.
	avoided bool
}

// host is the nodes that places mean by a name: one, unless two claim it.
type host struct {
	name   string
	nodes  []*node // by name
	places []*hostPlaces
}

// node finds or makes the node of the name.
func (m *Map) node(name string) *node {
	n := m.nodes[name]
	if n == nil {
		n = &node{Node: Node{Name: name}, slot: -1}
		m.nodes[name] = n
	}
	return n
}

// SetNode adds a node or says that it changed. What it is given is not changed
// afterwards.
func (m *Map) SetNode(set Node) {
	n := m.node(set.Name)
	if !n.exists {
		m.takeSlot(n)
	}
	same := n.host != nil && maps.Equal(n.Labels, set.Labels)
	changed := !same || n.Cordoned != set.Cordoned || n.Failed != set.Failed || !slices.EqualFunc(n.Taints, set.Taints, sameTaint)
	if changed {
		m.versions++
		n.version = m.versions
		if n.host != nil { // else it is new
			m.markReduced(n.Labels)
		}
	}
	if !same {
		m.exclusiveLeave(n)
	}
	restood := m.changeUp(n, func() { n.exists, n.Node = true, set })
	n.capacity.allocate(m, set.Allocatable)
	m.countDevices(n)
	if !same {
		m.exclusiveJoin(n)
		for _, l := range m.layouts {
			l.set(n)
		}
		m.rename(n, hostname(&set))
	}
	if changed {
		m.log.add(n.slot)
		m.markFreed(n)
		m.updatePlacesOn(n.host)
		m.recheckHolders(n.host)
	}
	if restood {
		m.unpinnedChangedOn(n)
	}
	m.settle(n)
}

func sameTaint(a, b corev1.Taint) bool {
	return a.Key == b.Key && a.Value == b.Value && a.Effect == b.Effect
}

// hostname is the name that places have for the node.
func hostname(n *Node) string { return cmp.Or(n.Labels[Hostname], n.Name) }

// allocate says what there is.
func (r *capacity) allocate(m *Map, amounts map[string]int64) {
	clear(r.allocatable)
	r.grow(0)
	for name, value := range amounts {
		if value > 0 {
			i := m.resources.of(name)
			r.grow(i)
			r.allocatable[i] = value
		}
	}
}

// DeleteNode says that a node is gone. Pods that are said to be on it count again
// should it come back.
func (m *Map) DeleteNode(name string) {
	n := m.nodes[name]
	if n == nil || !n.exists {
		return
	}
	m.exclusiveLeave(n)
	m.markReduced(n.Labels)
	restood := m.changeUp(n, func() { n.exists, n.Node = false, Node{Name: name} })
	for _, l := range m.layouts {
		l.set(n)
	}
	n.capacity.allocate(m, nil)
	m.countDevices(n)
	m.log.add(n.slot)
	m.changes++
	m.rename(n, "")
	if restood {
		m.unpinnedChangedOn(n)
	}
	m.settle(n)
	m.slots[n.slot] = nil
	m.free.clear(n.slot)
	m.freeSlots = append(m.freeSlots, n.slot)
	n.slot = -1
	m.dropUnknown(n)
}

// dropUnknown forgets a node that neither exists nor has pods.
func (m *Map) dropUnknown(n *node) {
	if !n.exists && len(n.pods) == 0 && n.host == nil {
		delete(m.nodes, n.Name)
	}
}

func (m *Map) takeSlot(n *node) {
	if last := len(m.freeSlots) - 1; last >= 0 {
		n.slot = m.freeSlots[last]
		m.freeSlots = m.freeSlots[:last]
	} else {
		n.slot = int32(len(m.slots))
		m.slots = append(m.slots, nil)
	}
	m.slots[n.slot] = n
}

// rename moves the node to the host of the name, or to none, and has the places that
// name either be where they are now.
func (m *Map) rename(n *node, name string) {
	if n.host != nil && n.host.name == name {
		return
	}
	left := n.host
	if left != nil {
		left.nodes = slices.DeleteFunc(left.nodes, func(other *node) bool { return other == n })
		n.host = nil
	}
	if name != "" {
		h := m.hostOf(name)
		at, _ := slices.BinarySearchFunc(h.nodes, n.Name, func(other *node, name string) int { return cmp.Compare(other.Name, name) })
		h.nodes = slices.Insert(h.nodes, at, n)
		n.host = h
		m.rehost(h)
	}
	if left != nil {
		m.rehost(left)
	}
}

// rehost says that the nodes of a host are others.
func (m *Map) rehost(h *host) {
	for _, n := range h.nodes {
		m.versions++ // a name that two nodes claim is good for neither
		n.version = m.versions
		m.free.update(n)
		m.log.add(n.slot)
		m.markFreed(n)
		if len(h.nodes) > 1 {
			m.markReduced(n.Labels)
		}
	}
	m.updatePlacesOn(h)
	m.recheckHolders(h)
	m.dropHost(h)
}

func (m *Map) hostOf(name string) *host {
	h := m.hosts[name]
	if h == nil {
		h = &host{name: name}
		m.hosts[name] = h
	}
	return h
}

// dropHost forgets a host that nobody names.
func (m *Map) dropHost(h *host) {
	if len(h.nodes) == 0 && len(h.places) == 0 {
		delete(m.hosts, h.name)
	}
}

// settle computes what is free on a node after something was charged to it, and tells
// those whom it concerns.
func (m *Map) settle(n *node) {
	if n.slot < 0 {
		n.portsChanged, n.portsFreed, n.portsKept = false, false, false
		return
	}
	changed, grew, reduced := m.free.update(n)
	changed, grew, reduced = changed || n.portsChanged, grew || n.portsFreed, reduced || n.portsKept
	n.portsChanged, n.portsFreed, n.portsKept = false, false, false
	if !changed || !n.exists {
		return
	}
	m.log.add(n.slot)
	if m.trial == 0 {
		m.changes++
	}
	if grew {
		m.markFreed(n)
	}
	if reduced {
		m.markReduced(n.Labels)
	}
	if m.trial == 0 && len(n.host.places) > 0 && (m.free.overcommitted(held, n.slot) || m.free.overcommitted(planned, n.slot) || len(n.ports) > 0) {
		m.recheckHolders(n.host)
	}
}

func (m *Map) markFreed(n *node) {
	if m.trial == 0 {
		m.changes++
		m.freed.Insert(n.slot)
	}
}

// markSeats has those looked at who have places on the host.
func (m *Map) recheckHolders(h *host) {
	if m.trial > 0 || h == nil {
		return
	}
	for _, s := range h.places {
		m.toCheck.Insert(s.holder.key)
	}
}

// chargePorts counts the ports of so many pods in a book.
func (n *node) chargePorts(b book, ports []HostPort, pods int32) {
	for _, p := range ports {
		counts := n.ports[p]
		if counts == nil {
			if n.ports == nil {
				n.ports = map[HostPort]*[books]int32{}
			}
			counts = new([books]int32)
			n.ports[p] = counts
		}
		counts[b] += pods
		if *counts == ([books]int32{}) {
			delete(n.ports, p)
		}
		n.portsChanged = true
		n.portsFreed = n.portsFreed || pods < 0
		n.portsKept = n.portsKept || b == resident && pods > 0
	}
}

// portsFree reports whether no pod there has a port that conflicts.
func (n *node) portsFree(ports []HostPort, on Ledger) bool {
	for _, want := range ports {
		for taken, counts := range n.ports {
			if !taken.conflicts(want) {
				continue
			}
			for _, b := range read[on] {
				if counts[b] > 0 {
					return false
				}
			}
		}
	}
	return true
}
