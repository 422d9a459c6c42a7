package place

import (
	"slices"
	"strings"
)

// isDevice reports whether a resource is not Kubernetes' own, such as nvidia.com/gpu: few nodes have it,
// and pods that do not ask for it should leave those nodes alone.
func isDevice(resource string) bool {
	domain, _, extended := strings.Cut(resource, "/")
	return extended && domain != "kubernetes.io" && !strings.HasSuffix(domain, ".kubernetes.io")
}

// countDevices updates the device counts after the allocatable amounts of a node changed.
func (m *Map) countDevices(n *node) {
	var have []int32
	for i, amount := range n.capacity.allocatable {
		if amount > 0 && isDevice(m.resources.names[i]) {
			have = append(have, int32(i))
		}
	}
	if slices.Equal(have, n.devices) {
		return
	}
	for _, device := range n.devices {
		if m.devices[device]--; m.devices[device] == 0 {
			delete(m.devices, device)
		}
	}
	for _, device := range have {
		m.devices[device]++
	}
	n.devices = have
	m.log.add(n.slot)
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

func (v vector) has(resource int32) bool {
	return slices.ContainsFunc(v, func(a amount) bool { return a.resource == resource })
}

// spareDevices excludes, for each ask, the nodes with devices that it does not ask for. It reports whether
// any ask is affected.
func (m *Map) spareDevices(f *search) bool {
	any := false
	for _, w := range f.wants {
		w.sparing = false
		for device := range m.devices {
			w.sparing = w.sparing || !w.takes.has(device)
		}
		if w.sparing {
			w.tally = nil
			any = true
		}
	}
	return any
}
