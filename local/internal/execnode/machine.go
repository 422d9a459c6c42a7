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

// mostPods is how many pods a node takes. A kubelet's default is 110; processes are lighter than containers.
const mostPods = 250

// capacity is what this machine has for pods: all of its CPU and memory.
func capacity() (corev1.ResourceList, error) {
	var info syscall.Sysinfo_t
	if err := syscall.Sysinfo(&info); err != nil {
		return nil, fmt.Errorf("reading the machine's memory: %w", err)
	}
	return corev1.ResourceList{
		corev1.ResourceCPU:    *resource.NewQuantity(int64(runtime.NumCPU()), resource.DecimalSI),
		corev1.ResourceMemory: *resource.NewQuantity(int64(uint64(info.Totalram)*uint64(info.Unit)), resource.BinarySI),
		corev1.ResourcePods:   *resource.NewQuantity(mostPods, resource.DecimalSI),
	}, nil
}

// kernelVersion is for people; a machine that does not tell has none.
func kernelVersion() string {
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		return ""
	}
	return unix.ByteSliceToString(name.Release[:])
}

// hostAddress is an address of this machine that the API takes for a pod's: not a loopback or link-local one, which
// are invalid in an EndpointSlice. It is the address that the machine would speak from to the world, else any other,
// and the loopback where a machine has nothing else.
func hostAddress() netip.Addr {
	// Connecting a datagram socket sends nothing; it only looks up the route. The address is one for documentation.
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
