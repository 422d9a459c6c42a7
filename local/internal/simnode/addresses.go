package simnode

import (
	"encoding/binary"
	"errors"
	"net/netip"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// podRange is where the addresses of simulated pods are from: an upper half of the private 10/8, which no default of
// Kubernetes (services, pods of common networks) takes.
var podRange = netip.MustParsePrefix("10.128.0.0/9")

// addresses hands out pod addresses, each to one live pod at a time. It goes round the range, so that an address that
// was given back is not another pod's the next moment. Safe for concurrent use.
type addresses struct {
	mu    sync.Mutex
	next  uint32
	taken map[netip.Addr]struct{}
	owned map[types.UID]netip.Addr
}

func newAddresses() *addresses {
	return &addresses{taken: map[netip.Addr]struct{}{}, owned: map[types.UID]netip.Addr{}}
}

var errNoAddress = errors.New("no free pod address is left in " + podRange.String())

// assign gives the pod its address: always the same one, until it is released.
func (a *addresses) assign(pod types.UID) (netip.Addr, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if address, ok := a.owned[pod]; ok {
		return address, nil
	}
	size := uint32(1) << (32 - podRange.Bits())
	first := podRange.Addr().As4()
	for range len(a.taken) + 1 {
		a.next = a.next%(size-2) + 1 // neither the first of the range nor the last
		address := addressPlus(first, a.next)
		if _, busy := a.taken[address]; !busy {
			a.take(pod, address)
			return address, nil
		}
		if uint32(len(a.taken)) >= size-2 {
			break
		}
	}
	return netip.Addr{}, errNoAddress
}

// keep records an address that a pod has from an earlier run. Addresses outside of the range are no concern of ours,
// and one that another pod holds stays with that pod.
func (a *addresses) keep(pod types.UID, ip string) {
	address, err := netip.ParseAddr(ip)
	if err != nil || !podRange.Contains(address) {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	_, busy := a.taken[address]
	_, has := a.owned[pod]
	if !busy && !has {
		a.take(pod, address)
	}
}

// release gives back the pod's address, if it has one.
func (a *addresses) release(pod types.UID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if address, ok := a.owned[pod]; ok {
		delete(a.owned, pod)
		delete(a.taken, address)
	}
}

func (a *addresses) take(pod types.UID, address netip.Addr) {
	a.taken[address] = struct{}{}
	a.owned[pod] = address
}

// addressPlus counts on from an IPv4 address.
func addressPlus(first [4]byte, offset uint32) netip.Addr {
	var sum [4]byte
	binary.BigEndian.PutUint32(sum[:], binary.BigEndian.Uint32(first[:])+offset)
	return netip.AddrFrom4(sum)
}
