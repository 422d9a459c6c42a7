package simnode

import (
	"encoding/binary"
	"errors"
	"net/netip"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// podRange is the range of the addresses of simulated pods: the upper half of 10.0.0.0/8, which no default of
// Kubernetes or of common pod networks uses.
var podRange = netip.MustParsePrefix("10.128.0.0/9")

// addresses assigns an address to each live pod. It cycles through the range, so that a released address is not reused
// soon. Safe for concurrent use.
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

// assign returns the address of the pod, which stays the same until it is released.
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

// keep records an address that a pod has from an earlier run. It ignores addresses outside the range and addresses that
// another pod holds.
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

// release releases the pod's address, if it has one.
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

// addressPlus returns the IPv4 address at an offset from first.
func addressPlus(first [4]byte, offset uint32) netip.Addr {
	var sum [4]byte
	binary.BigEndian.PutUint32(sum[:], binary.BigEndian.Uint32(first[:])+offset)
	return netip.AddrFrom4(sum)
}
