package place

import (
	"cmp"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// SetNode adds or updates a node. The caller must not change its argument afterwards.
func (m *Map) SetNode(set Node) {
	n := m.Nodes.node(set.Name)
	if !n.exists {
		m.Nodes.takeSlot(n)
	}
	same := n.host != nil && maps.Equal(n.Labels, set.Labels)
	changed := !same || n.Cordoned != set.Cordoned || n.Failed != set.Failed ||
		!slices.EqualFunc(n.Taints, set.Taints, sameTaint)
	if changed {
		m.Nodes.renew(n)
		if n.host != nil { // a new node reduces nothing
			m.changes.markReduced(n.Labels)
		}
	}
	if !same {
		m.Exclusive.leave(n)
	}
	upChanged := m.pods.changeUp(n, func() { n.exists, n.Node = true, set })
	learned := n.capacity.allocate(m.resources, set.Allocatable)
	m.Nodes.countDevices(n)
	if !same {
		m.Exclusive.join(n)
		m.Layouts.set(n)
		m.rename(n, hostname(&set))
	}
	if changed {
		m.changes.log.add(n.slot)
		m.changes.markFreed(n)
		m.holdings.updatePlacesOn(n.host)
		m.changes.recheck(n.host)
	}
	if upChanged {
		m.holdings.unpinnedChangedOn(n)
	}
	m.Usage.settle(n)
	m.learn(learned)
}

func sameTaint(a, b corev1.Taint) bool {
	return a.Key == b.Key && a.Value == b.Value && a.Effect == b.Effect
}

// DeleteNode removes a node. Pods bound to it stay known and count again if the node returns.
func (m *Map) DeleteNode(name string) {
	n := m.Nodes.byName[name]
	if n == nil || !n.exists {
		return
	}
	m.Exclusive.leave(n)
	m.changes.markReduced(n.Labels)
	upChanged := m.pods.changeUp(n, func() { n.exists, n.Node = false, Node{Name: name} })
	m.Layouts.set(n)
	n.capacity.allocate(m.resources, nil)
	m.Nodes.countDevices(n)
	m.changes.log.add(n.slot)
	m.changes.happened()
	m.rename(n, "")
	if upChanged {
		m.holdings.unpinnedChangedOn(n)
	}
	m.Usage.settle(n)
	m.Usage.free.clear(n.slot)
	m.Nodes.leaveSlot(n)
	m.Nodes.dropUnknown(n)
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
		h := m.Nodes.hostOf(name)
		at, _ := slices.BinarySearchFunc(h.nodes, n.Name,
			func(other *node, name string) int { return cmp.Compare(other.Name, name) })
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
		m.Nodes.renew(n) // if two nodes have the name, neither can be used
		m.Usage.free.update(n)
		m.changes.log.add(n.slot)
		m.changes.markFreed(n)
		if len(h.nodes) > 1 {
			m.changes.markReduced(n.Labels)
		}
	}
	m.holdings.updatePlacesOn(h)
	m.changes.recheck(h)
	m.Nodes.dropHost(h)
}
