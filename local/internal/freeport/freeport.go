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

// Ports from 32768 are the kernel's default ephemeral range: a free one may be taken by an outgoing connection before
// it is listened on. Ports from 30000 to 32767 are Kubernetes' NodePorts.
const (
	first = 20000
	end   = 30000
)

// maxTries bounds how many taken ports are tried.
const maxTries = 20

// OnLoopback returns a loopback address that nobody listens on, outside the ranges from which ports are assigned at
// random.
func OnLoopback() (netip.AddrPort, error) {
	loopback := netip.AddrFrom4([4]byte{127, 0, 0, 1})
	var err error
	for range maxTries {
		address := netip.AddrPortFrom(loopback, uint16(first+rand.IntN(end-first)))
		var listener net.Listener
		if listener, err = net.Listen("tcp4", address.String()); err == nil {
			return address, listener.Close()
		}
	}
	return netip.AddrPort{}, fmt.Errorf("finding a free port: %w", err)
}
