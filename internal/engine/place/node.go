package place

import (
	"cmp"
	"iter"
	"slices"
	"strings"

	"github.com/musterhq/muster/internal/engine/order"
)

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
	// ports counts the pods of each book that occupy a port, exclusive the pods that are exclusive by a label.
	// portsChanged, portsFreed (some ports are free now) and portsReduced (resident pods use more ports) are what settle
	// records.
	ports                                  portCounts
	exclusive                              map[string]*[books]int32
	portsChanged, portsFreed, portsReduced bool
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

// Nodes holds the nodes that exist, the nodes that only pods name, and the hosts that places name.
type Nodes struct {
	resources *resources
	changes   *changes

	byName map[string]*node
	// slots holds the nodes by their dense index, nil if an index is free.
	slots     []*node
	freeSlots []int32
	// hosts holds the nodes by their names in places.
	hosts map[string]*host
	// devices counts, for each device resource, the nodes that have it.
	devices map[int32]int
	// versions numbers changes to the node properties that filters depend on.
	versions uint64
}

func newNodes(resources *resources, changes *changes) *Nodes {
	return &Nodes{resources: resources, changes: changes, byName: map[string]*node{}, hosts: map[string]*host{},
		devices: map[int32]int{}}
}

// Slots returns a number above all slots.
func (ns *Nodes) Slots() int { return len(ns.slots) }

// At returns the node in a slot, nil if there is none.
func (ns *Nodes) At(slot int32) *Node {
	if n := ns.slots[slot]; n != nil {
		return &n.Node
	}
	return nil
}

// HostAt returns the name of the node in a slot in places.
func (ns *Nodes) HostAt(slot int32) string { return ns.slots[slot].host.name }

// SlotsOf returns the slots of the nodes that have a name in places: of one node, unless several have the same Hostname
// label.
func (ns *Nodes) SlotsOf(host string) iter.Seq[int32] {
	return func(yield func(int32) bool) {
		if h := ns.hosts[host]; h != nil {
			for _, n := range h.nodes {
				if !yield(n.slot) {
					return
				}
			}
		}
	}
}

// SlotOf returns the slot of the node that has a name in places, and how many nodes have that name: the slot is that of
// the first one.
func (ns *Nodes) SlotOf(host string) (slot int32, nodes int) {
	h := ns.hosts[host]
	if h == nil || len(h.nodes) == 0 {
		return -1, 0
	}
	return h.nodes[0].slot, len(h.nodes)
}

// IsAvoided reports whether a search keeps off the node in a slot.
func (ns *Nodes) IsAvoided(slot int32) bool { return ns.slots[slot].avoided }

// node returns the node with the name, which it creates if needed.
func (ns *Nodes) node(name string) *node {
	n := ns.byName[name]
	if n == nil {
		n = &node{Node: Node{Name: name}, slot: -1}
		ns.byName[name] = n
	}
	return n
}

// hostname returns the node's name in places.
func hostname(n *Node) string { return cmp.Or(n.Labels[Hostname], n.Name) }

// dropUnknown removes a node that does not exist and has no pods.
func (ns *Nodes) dropUnknown(n *node) {
	if !n.exists && len(n.pods) == 0 && n.host == nil {
		delete(ns.byName, n.Name)
	}
}

// takeSlot gives the node a free slot, or a new one.
func (ns *Nodes) takeSlot(n *node) {
	if last := len(ns.freeSlots) - 1; last >= 0 {
		n.slot = ns.freeSlots[last]
		ns.freeSlots = ns.freeSlots[:last]
	} else {
		n.slot = int32(len(ns.slots))
		ns.slots = append(ns.slots, nil)
	}
	ns.slots[n.slot] = n
}

// hostOf returns the host of the name, which it creates if needed.
func (ns *Nodes) hostOf(name string) *host {
	h := ns.hosts[name]
	if h == nil {
		h = &host{name: name}
		ns.hosts[name] = h
	}
	return h
}

// dropHost removes a host that has neither nodes nor places.
func (ns *Nodes) dropHost(h *host) {
	if len(h.nodes) == 0 && len(h.places) == 0 {
		delete(ns.hosts, h.name)
	}
}

// up reports whether pods on the node are alive: it exists and has not failed.
func (n *node) up() bool { return n.exists && !n.Failed }

// compare orders nodes by their names in places.
func (n *node) compare(other *node) int {
	return cmp.Or(cmp.Compare(n.host.name, other.host.name), cmp.Compare(n.Name, other.Name))
}

func hasLabel(n *Node, label string) bool {
	_, ok := n.Labels[label]
	return ok
}

// hasOtherDevice reports whether the node has a device that pods with these requests do not use.
func (n *node) hasOtherDevice(takes vector) bool {
	for _, device := range n.devices {
		if !takes.has(device) {
			return true
		}
	}
	return false
}

// leaveSlot frees the slot of a node.
func (ns *Nodes) leaveSlot(n *node) {
	ns.slots[n.slot] = nil
	ns.freeSlots = append(ns.freeSlots, n.slot)
	n.slot = -1
}

// renew gives a node another version, since properties that filters depend on have changed.
func (ns *Nodes) renew(n *node) {
	ns.versions++
	n.version = ns.versions
}

// countDevices updates the device counts after the allocatable amounts of a node changed.
func (ns *Nodes) countDevices(n *node) {
	var have []int32
	for i, amount := range n.capacity.allocatable {
		if amount > 0 && isDevice(ns.resources.names[i]) {
			have = append(have, int32(i))
		}
	}
	if slices.Equal(have, n.devices) {
		return
	}
	for _, device := range n.devices {
		if ns.devices[device]--; ns.devices[device] == 0 {
			delete(ns.devices, device)
		}
	}
	for _, device := range have {
		ns.devices[device]++
	}
	n.devices = have
	ns.changes.log.add(n.slot)
}

// isDevice reports whether a resource is not Kubernetes' own, such as nvidia.com/gpu: few nodes have it,
// and pods that do not ask for it should leave these nodes alone.
func isDevice(resource string) bool {
	domain, _, extended := strings.Cut(resource, "/")
	return extended && domain != "kubernetes.io" && !strings.HasSuffix(domain, ".kubernetes.io")
}

// chargePorts counts the ports of a number of pods in a book; a negative number takes them back.
func (n *node) chargePorts(b book, ports []HostPort, pods int32) {
	if n.ports == nil {
		n.ports = portCounts{}
	}
	for _, p := range ports {
		n.ports.add(p, b, pods)
		n.portsChanged = true
		n.portsFreed = n.portsFreed || pods < 0
		n.portsReduced = n.portsReduced || b == resident && pods > 0
	}
}

// portsFree reports whether no port that is used on the node conflicts with the wanted ones.
func (n *node) portsFree(ports []HostPort, on Ledger) bool {
	for _, want := range ports {
		for _, b := range read[on] {
			if n.ports.conflicts(want, b) > 0 {
				return false
			}
		}
	}
	return true
}

// portsTaken reports whether a port is used by more than one pod.
func (n *node) portsTaken(b book, ports []HostPort) bool {
	own := portCounts{} // a pod may use a port of all addresses and of one of them
	for _, port := range ports {
		own.add(port, b, 1)
	}
	for _, want := range ports {
		if n.ports.conflicts(want, b) > own.conflicts(want, b) {
			return true
		}
	}
	return false
}
