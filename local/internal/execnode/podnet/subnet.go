package podnet

import (
	"errors"
	"fmt"
	"net/netip"
)

// subnetBits is the size of a process's subnet: 1,022 addresses.
const subnetBits = 22

// ranges are the candidates for subnets, in order of preference. They leave out what clusters use for services
// (10.96.0.0/12), simulated pods (10.128.0.0/9), and the subnets that are common in homes and offices.
var ranges = []netip.Prefix{
	netip.MustParsePrefix("10.64.0.0/11"),
	netip.MustParsePrefix("172.24.0.0/13"),
	netip.MustParsePrefix("100.96.0.0/11"),
	netip.MustParsePrefix("192.168.128.0/17"),
}

var errNoSubnet = errors.New("no private subnet is free on this machine")

// freeSubnet returns the first subnet that no network known to the machine overlaps.
func freeSubnet(known []netip.Prefix) (netip.Prefix, error) {
	for _, from := range ranges {
		for candidate := netip.PrefixFrom(from.Addr(),
			subnetBits); from.Contains(candidate.Addr()); candidate = next(candidate) {
			if !overlapsAny(candidate, known) {
				return candidate, nil
			}
		}
	}
	return netip.Prefix{}, errNoSubnet
}

// overlapsAny ignores the default route, which every address is in.
func overlapsAny(subnet netip.Prefix, known []netip.Prefix) bool {
	for _, other := range known {
		if other.Bits() > 0 && other.Overlaps(subnet) {
			return true
		}
	}
	return false
}

// next is the subnet after this one.
func next(subnet netip.Prefix) netip.Prefix {
	return netip.PrefixFrom(plus(subnet.Addr(), 1<<(32-subnet.Bits())), subnet.Bits())
}

func plus(address netip.Addr, n uint32) netip.Addr {
	bytes := address.As4()
	value := uint32(bytes[0])<<24 | uint32(bytes[1])<<16 | uint32(bytes[2])<<8 | uint32(bytes[3])
	value += n
	return netip.AddrFrom4([4]byte{byte(value >> 24), byte(value >> 16), byte(value >> 8), byte(value)})
}

// addresses assigns the addresses of a subnet. It cycles through them, so that a released address is not reused soon.
type addresses struct {
	subnet netip.Prefix
	last   uint32
	taken  map[netip.Addr]bool
}

func (a *addresses) take() (netip.Addr, error) {
	size := uint32(1) << (32 - a.subnet.Bits())
	for range size - 2 {
		a.last = a.last%(size-2) + 1 // neither the first nor the last of the subnet
		address := plus(a.subnet.Addr(), a.last)
		if !a.taken[address] {
			a.taken[address] = true
			return address, nil
		}
	}
	return netip.Addr{}, fmt.Errorf("all %d addresses of %s are taken", size-2, a.subnet)
}

func (a *addresses) giveBack(address netip.Addr) { delete(a.taken, address) }
