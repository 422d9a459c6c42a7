// Package freeport finds ports for processes that are started with them.
//
// Any package of this module may use it.
package freeport

import (
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
)

// The kernel gives ports from 32768 on, unless it is told otherwise, to whoever connects or asks for any: one of those that is
// free now may be somebody's before it is listened on. Kubernetes gives those from 30000 on to Services.
const (
	first = 20000
	end   = 30000
)

// triesMost is how often one may be met that is taken.
const triesMost = 20

// OnLoopback is an address on loopback that nobody listens on now, and that none gets by chance later, but from here.
func OnLoopback() (netip.AddrPort, error) {
	loopback := netip.AddrFrom4([4]byte{127, 0, 0, 1})
	var err error
	for range triesMost {
		address := netip.AddrPortFrom(loopback, uint16(first+rand.IntN(end-first)))
		var listener net.Listener
		if listener, err = net.Listen("tcp4", address.String()); err == nil {
			return address, listener.Close()
		}
	}
	return netip.AddrPort{}, fmt.Errorf("finding a free port: %w", err)
}
