package execnode

import (
	"fmt"
	"net"
	"net/netip"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// maxPods is the maximum number of pods on a node. A kubelet's default is 110; processes are lighter than containers.
const maxPods = 250

// capacity is what this machine has for pods: all of its CPU and memory.
func capacity() (corev1.ResourceList, error) {
	var info syscall.Sysinfo_t
	if err := syscall.Sysinfo(&info); err != nil {
		return nil, fmt.Errorf("reading the machine's memory: %w", err)
	}
	return corev1.ResourceList{
		corev1.ResourceCPU:    *resource.NewQuantity(int64(runtime.NumCPU()), resource.DecimalSI),
		corev1.ResourceMemory: *resource.NewQuantity(int64(uint64(info.Totalram)*uint64(info.Unit)), resource.BinarySI),
		corev1.ResourcePods:   *resource.NewQuantity(maxPods, resource.DecimalSI),
	}, nil
}

// kernelVersion returns the kernel's version for display; empty if it cannot be read.
func kernelVersion() string {
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		return ""
	}
	return unix.ByteSliceToString(name.Release[:])
}

// hostAddress returns an address of this machine that is valid in an EndpointSlice, so neither loopback nor link-local:
// preferably the source address of its default route, or else any other. If there is none, it returns the loopback
// address.
func hostAddress() netip.Addr {
	// Connecting a datagram socket sends nothing and only looks up the route. The address is reserved for
	// documentation.
	if conn, err := net.Dial("udp4", "192.0.2.1:9"); err == nil {
		defer conn.Close()
		if address := conn.LocalAddr().(*net.UDPAddr).AddrPort().Addr(); address.IsGlobalUnicast() {
			return address
		}
	}
	addresses, err := net.InterfaceAddrs()
	if err == nil {
		for _, each := range addresses {
			network, ok := each.(*net.IPNet)
			if !ok {
				continue
			}
			if address, ok := netip.AddrFromSlice(network.IP.To4()); ok && address.IsGlobalUnicast() {
				return address
			}
		}
	}
	return netip.MustParseAddr("127.0.0.1")
}
