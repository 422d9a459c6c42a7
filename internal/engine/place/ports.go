package place

import "cmp"

// usedPort is a port of a node, on one address or on all of them. A node counts each port of a pod twice: with its
// address, and as used on some address. So what a pod's port conflicts with is found without looking at all ports of
// the node.
type usedPort struct {
	port     int32
	protocol string
	address  string
}

// Addresses of a usedPort other than a single one.
const (
	allAddresses = ""
	someAddress  = "some"
)

// portCounts counts, by book, the pods that use each port.
type portCounts map[usedPort]*[books]int32

// used returns the port as it is counted.
func (h HostPort) used() usedPort {
	out := usedPort{h.Port, cmp.Or(string(h.Protocol), "TCP"), h.IP}
	if h.IP == "0.0.0.0" || h.IP == "::" {
		out.address = allAddresses
	}
	return out
}

// on returns the same port on other addresses.
func (u usedPort) on(address string) usedPort { return usedPort{u.port, u.protocol, address} }

// add counts a port of a number of pods in a book; a negative number takes them back.
func (pc portCounts) add(p HostPort, b book, pods int32) {
	for _, key := range []usedPort{p.used(), p.used().on(someAddress)} {
		counts := pc[key]
		if counts == nil {
			counts = new([books]int32)
			pc[key] = counts
		}
		if counts[b] += pods; *counts == ([books]int32{}) {
			delete(pc, key)
		}
	}
}

// conflicts returns how many pods of a book use a port that a pod with this port cannot share.
func (pc portCounts) conflicts(p HostPort, b book) int32 {
	key := p.used()
	if key.address == allAddresses {
		return pc.of(key.on(someAddress), b)
	}
	return addCount(pc.of(key, b), pc.of(key.on(allAddresses), b))
}

func (pc portCounts) of(p usedPort, b book) int32 {
	if counts := pc[p]; counts != nil {
		return counts[b]
	}
	return 0
}
