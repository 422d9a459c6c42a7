package place

import (
	"cmp"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"
)

// TestPortsConflictAsTheModelSays compares the counts of a node with a comparison of all ports with each other.
func TestPortsConflictAsTheModelSays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		port := rapid.Custom(func(t *rapid.T) HostPort {
			return HostPort{
				IP:       rapid.SampledFrom([]string{"", "0.0.0.0", "::", "10.0.0.1", "10.0.0.2"}).Draw(t, "address"),
				Protocol: rapid.SampledFrom([]corev1.Protocol{"", "TCP", "UDP"}).Draw(t, "protocol"),
				Port:     rapid.Int32Range(1, 2).Draw(t, "port"),
			}
		})
		taken := rapid.SliceOfN(port, 0, 4).Draw(t, "taken")
		gone := rapid.SliceOfN(port, 0, 4).Draw(t, "gone")
		n := &node{}
		n.chargePorts(held, gone, 1)
		n.chargePorts(held, taken, 1)
		n.chargePorts(held, gone, -1)
		wanted := port.Draw(t, "wanted")
		conflicts := int32(0)
		for _, p := range taken {
			if p.conflicts(wanted) {
				conflicts++
			}
		}
		if got := n.ports.conflicts(wanted, held); got != conflicts {
			t.Fatalf("%d pods conflict with %v, want %d of %v", got, wanted, conflicts, taken)
		}
		n.chargePorts(held, taken, -1)
		if len(n.ports) != 0 {
			t.Fatalf("ports %v are left once no pod is", n.ports)
		}
	})
}

// BenchmarkManyPorts asks for thousands of ports where each node has as many others in use.
func BenchmarkManyPorts(b *testing.B) {
	const ports, wantedFrom = 4_000, 30_000
	n := &node{}
	n.chargePorts(held, portRange(1, ports), 1)
	wanted := portRange(wantedFrom, ports)
	for b.Loop() {
		if !n.portsFree(wanted, Now) {
			b.Fatal("the ports are taken")
		}
	}
}

func portRange(from, many int32) (out []HostPort) {
	for i := range many {
		out = append(out, HostPort{Port: from + i})
	}
	return out
}

// conflicts reports whether the two ports cannot be used on one node.
func (h HostPort) conflicts(other HostPort) bool {
	protocol := func(p HostPort) string { return cmp.Or(string(p.Protocol), "TCP") }
	all := func(p HostPort) bool { return p.IP == "" || p.IP == "0.0.0.0" || p.IP == "::" }
	return h.Port == other.Port && protocol(h) == protocol(other) && (all(h) || all(other) || h.IP == other.IP)
}
