package place

import (
	"cmp"
	"maps"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/musterhq/muster/internal/engine/order"
)

// cap32 limits the number of pods counted as fitting on a node, so that sums over all nodes do not
// overflow.
const cap32 = math.MaxInt32

// node is a Node, or a placeholder for one that pods are bound to but that does not exist.
type node struct {
	Node
	exists bool
	slot   int32
	host   *host
	// version changes with the properties that filters depend on.
	version  uint64
	capacity capacity
	pods     map[order.Key]*pod
	// ports counts the pods of each book that occupy a port, exclusive those that are exclusive by a
	// label. portsChanged, portsFreed and portsKept (freed ports, and new ports of resident pods) tell
	// settle what to record.
	ports                               portCounts
	exclusive                           map[string]*[books]int32
	portsChanged, portsFreed, portsKept bool
	// inExclusive counts, by book, the tracked domains that the node is in and that pods have to themselves.
	inExclusive [books]int32
	// devices are the node's resources that are not Kubernetes' own.
	devices []int32
	// avoided is set while a search must not use the node.
	avoided bool
}

// host is the set of nodes that a name in places means: one node, unless two have the same Hostname label.
type host struct {
	name   string
	nodes  []*node // sorted by name
	places []*hostPlaces
}

// node returns the node with the name, which it creates if needed.
func (m *Map) node(name string) *node {
	n := m.nodes[name]
	if n == nil {
		n = &node{Node: Node{Name: name}, slot: -1}
		m.nodes[name] = n
	}
	return n
}

// SetNode adds or updates a node. The caller must not change its argument afterwards.
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
		if n.host != nil { // a new node reduces nothing
			m.markReduced(n.Labels)
		}
	}
	if !same {
		m.exclusiveLeave(n)
	}
	upChanged := m.changeUp(n, func() { n.exists, n.Node = true, set })
	learned := n.capacity.allocate(m, set.Allocatable)
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
	if upChanged {
		m.unpinnedChangedOn(n)
	}
	m.settle(n)
	m.learn(learned)
}

func sameTaint(a, b corev1.Taint) bool {
	return a.Key == b.Key && a.Value == b.Value && a.Effect == b.Effect
}

// hostname returns the node's name in places.
func hostname(n *Node) string { return cmp.Or(n.Labels[Hostname], n.Name) }

// allocate sets the allocatable amounts. It returns the resources that no node had before.
func (c *capacity) allocate(m *Map, amounts map[string]int64) (learned []string) {
	clear(c.allocatable)
	c.grow(0)
	for name, value := range amounts {
		if value > 0 {
			i, isNew := m.resources.of(name)
			if isNew {
				learned = append(learned, name)
			}
			c.grow(i)
			c.allocatable[i] = value
		}
	}
	return learned
}

// DeleteNode removes a node. Pods bound to it stay known and count again if the node returns.
func (m *Map) DeleteNode(name string) {
	n := m.nodes[name]
	if n == nil || !n.exists {
		return
	}
	m.exclusiveLeave(n)
	m.markReduced(n.Labels)
	upChanged := m.changeUp(n, func() { n.exists, n.Node = false, Node{Name: name} })
	for _, l := range m.layouts {
		l.set(n)
	}
	n.capacity.allocate(m, nil)
	m.countDevices(n)
	m.log.add(n.slot)
	m.changes++
	m.rename(n, "")
	if upChanged {
		m.unpinnedChangedOn(n)
	}
	m.settle(n)
	m.slots[n.slot] = nil
	m.free.clear(n.slot)
	m.freeSlots = append(m.freeSlots, n.slot)
	n.slot = -1
	m.dropUnknown(n)
}

// dropUnknown removes a node that does not exist and has no pods.
func (m *Map) dropUnknown(n *node) {
	if !n.exists && len(n.pods) == 0 && n.host == nil {
		delete(m.nodes, n.Name)
	}
}

// takeSlot gives the node a free slot, or a new one.
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

// rename moves the node to the host of the name, or to none if the name is empty, and updates the places
// on both hosts.
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

// rehost updates what depends on a host's nodes after they have changed.
func (m *Map) rehost(h *host) {
	for _, n := range h.nodes {
		m.versions++ // if two nodes have the name, neither can be used
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

// hostOf returns the host of the name, which it creates if needed.
func (m *Map) hostOf(name string) *host {
	h := m.hosts[name]
	if h == nil {
		h = &host{name: name}
		m.hosts[name] = h
	}
	return h
}

// dropHost removes a host that has neither nodes nor places.
func (m *Map) dropHost(h *host) {
	if len(h.nodes) == 0 && len(h.places) == 0 {
		delete(m.hosts, h.name)
	}
}

// settle updates the free amounts of a node after charges to it, and records who is affected.
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
	if reduced && m.trial == 0 {
		m.markReduced(n.Labels)
	}
	if m.trial == 0 && len(n.host.places) > 0 && (m.free.overcommitted(held, n.slot) || m.free.overcommitted(planned, n.slot) || len(n.ports) > 0) {
		m.recheckHolders(n.host)
	}
}

// markFreed records that the node has more free capacity.
func (m *Map) markFreed(n *node) {
	if m.trial == 0 {
		m.changes++
		m.freed.Insert(n.slot)
	}
}

// recheckHolders marks the workloads that have places on the host for a check of these places.
func (m *Map) recheckHolders(h *host) {
	if m.trial > 0 || h == nil {
		return
	}
	for _, s := range h.places {
		m.toCheck.Insert(s.holder.key)
	}
}
