package podnet

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
)

// Fabric is the network that all pods of this process share. Safe for concurrent use.
type Fabric struct {
	namespace     *os.File
	inside        *netlink.Handle // in the fabric's namespace
	bridge        int             // link index in there
	hostInterface netlink.Link    // the machine's interface
	gateway       netip.Addr

	mu        sync.Mutex
	addresses addresses
	lastPort  int
}

// shared is the process's fabric while anyone uses it.
var shared struct {
	sync.Mutex
	fabric *Fabric
	users  int
}

// Open returns the process's fabric, and creates it if necessary. Close must be called once for each Open.
func Open() (*Fabric, error) {
	shared.Lock()
	defer shared.Unlock()
	if shared.fabric == nil {
		fabric, err := newFabric()
		if err != nil {
			return nil, err
		}
		shared.fabric = fabric
	}
	shared.users++
	return shared.fabric, nil
}

// Close releases the fabric. The last user's Close removes it, with the machine's interface.
func (f *Fabric) Close() error {
	shared.Lock()
	defer shared.Unlock()
	if shared.users--; shared.users > 0 {
		return nil
	}
	shared.fabric = nil
	return f.takeDown()
}

func newFabric() (*Fabric, error) {
	unlock, err := lockMachine()
	if err != nil {
		return nil, err
	}
	defer unlock()
	known, err := knownNetworks()
	if err != nil {
		return nil, err
	}
	subnet, err := freeSubnet(known)
	if err != nil {
		return nil, err
	}
	namespace, err := newNamespace()
	if err != nil {
		return nil, err
	}
	f := &Fabric{namespace: namespace, addresses: addresses{subnet: subnet, taken: map[netip.Addr]bool{}}}
	if err := f.build(); err != nil {
		f.takeDown()
		return nil, err
	}
	return f, nil
}

// lockName is an abstract socket: like interfaces it belongs to the machine's network namespace, and the kernel frees
// it when its owner dies.
const lockName = "@muster-podnet"

// lockTimeout is how long another process may take to set up its network.
const lockTimeout = time.Minute

// lockMachine keeps two processes from taking the same subnet: one process owns the socket, and another waits for the
// end of a connection to the socket.
func lockMachine() (unlock func(), err error) {
	deadline := time.Now().Add(lockTimeout)
	for {
		listener, err := net.Listen("unix", lockName)
		if err == nil {
			return func() { listener.Close() }, nil
		}
		if !errors.Is(err, syscall.EADDRINUSE) || time.Now().After(deadline) {
			return nil, fmt.Errorf("locking the machine's network: %w", err)
		}
		if owner, err := net.Dial("unix", lockName); err == nil {
			owner.SetReadDeadline(deadline)
			owner.Read(make([]byte, 1)) // nothing is ever sent: it returns when the owner closes
			owner.Close()
		}
	}
}

// knownNetworks returns the networks that the machine has an address in or a route to.
func knownNetworks() ([]netip.Prefix, error) {
	var known []netip.Prefix
	add := func(network *net.IPNet) {
		if network == nil {
			return
		}
		bits, _ := network.Mask.Size()
		if address, ok := netip.AddrFromSlice(network.IP.To4()); ok {
			known = append(known, netip.PrefixFrom(address, bits).Masked())
		}
	}
	routes, err := netlink.RouteListFiltered(netlink.FAMILY_V4, &netlink.Route{}, netlink.RT_FILTER_TABLE)
	if err != nil {
		return nil, fmt.Errorf("listing the machine's routes: %w", err)
	}
	for _, route := range routes {
		add(route.Dst)
	}
	own, err := netlink.AddrList(nil, netlink.FAMILY_V4)
	if err != nil {
		return nil, fmt.Errorf("listing the machine's addresses: %w", err)
	}
	for _, address := range own {
		add(address.IPNet)
	}
	return known, nil
}

// build makes the bridge, and the pair of interfaces between it and the machine.
func (f *Fabric) build() error {
	var err error
	if f.inside, err = netlink.NewHandleAt(netns.NsHandle(f.namespace.Fd())); err != nil {
		return fmt.Errorf("opening the pods' network: %w", err)
	}
	bridge := &netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: "pods", Flags: net.FlagUp}}
	if err := f.inside.LinkAdd(bridge); err != nil {
		return fmt.Errorf("making the bridge of the pods' network: %w", err)
	}
	link, err := f.inside.LinkByName("pods")
	if err != nil {
		return fmt.Errorf("finding the bridge of the pods' network: %w", err)
	}
	f.bridge = link.Attrs().Index
	if f.hostInterface, err = f.createHostInterface(); err != nil {
		return err
	}
	machine, err := f.inside.LinkByName("machine")
	if err != nil {
		return fmt.Errorf("finding the machine's end of the pods' network: %w", err)
	}
	if err := f.inside.LinkSetMasterByIndex(machine, f.bridge); err != nil {
		return fmt.Errorf("joining the machine to the bridge: %w", err)
	}
	if err := f.inside.LinkSetUp(machine); err != nil {
		return fmt.Errorf("joining the machine to the bridge: %w", err)
	}
	if f.gateway, err = f.addresses.take(); err != nil {
		return err
	}
	if err := netlink.AddrAdd(f.hostInterface, address(f.gateway, f.addresses.subnet.Bits())); err != nil {
		return fmt.Errorf("giving %s its address: %w", f.hostInterface.Attrs().Name, err)
	}
	return nil
}

// maxFabrics bounds the names that are tried for the machine's interface.
const maxFabrics = 256

// createHostInterface creates the machine's interface with the first free name of muster0, muster1 and so on.
func (f *Fabric) createHostInterface() (netlink.Link, error) {
	for i := range maxFabrics {
		name := "muster" + strconv.Itoa(i)
		err := netlink.LinkAdd(&netlink.Veth{
			LinkAttrs: netlink.LinkAttrs{Name: name, Flags: net.FlagUp},
			PeerName:  "machine", PeerNamespace: netlink.NsFd(f.namespace.Fd()),
		})
		if errors.Is(err, syscall.EEXIST) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("making the interface %s: %w", name, err)
		}
		link, err := netlink.LinkByName(name)
		if err != nil {
			return nil, fmt.Errorf("finding the interface %s: %w", name, err)
		}
		return link, nil
	}
	return nil, fmt.Errorf("no interface name is free: muster0 to muster%d exist", maxFabrics-1)
}

func (f *Fabric) takeDown() error {
	var err error
	if f.hostInterface != nil {
		if err = netlink.LinkDel(f.hostInterface); err != nil {
			err = fmt.Errorf("removing the interface %s: %w", f.hostInterface.Attrs().Name, err)
		}
	}
	if f.inside != nil {
		f.inside.Close()
	}
	f.namespace.Close()
	return err
}

// Interface is the name of the machine's interface.
func (f *Fabric) Interface() string { return f.hostInterface.Attrs().Name }

// HostAddress returns an address at which pods reach the machine, and this process in it. It is reserved for the caller
// until the returned function is called.
func (f *Fabric) HostAddress() (netip.Addr, func(), error) {
	f.mu.Lock()
	own, err := f.addresses.take()
	f.mu.Unlock()
	if err != nil {
		return netip.Addr{}, nil, err
	}
	release := func() {
		netlink.AddrDel(f.hostInterface, address(own, 32))
		f.mu.Lock()
		defer f.mu.Unlock()
		f.addresses.giveBack(own)
	}
	if err := netlink.AddrAdd(f.hostInterface, address(own, 32)); err != nil {
		release()
		return netip.Addr{}, nil, fmt.Errorf("adding %s to %s: %w", own, f.Interface(), err)
	}
	return own, release, nil
}

func address(ip netip.Addr, bits int) *netlink.Addr {
	return &netlink.Addr{IPNet: &net.IPNet{IP: ip.AsSlice(), Mask: net.CIDRMask(bits, 32)}}
}
