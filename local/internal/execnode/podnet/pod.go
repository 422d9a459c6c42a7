package podnet

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"
	"sync"
	"syscall"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
)

// Pod is the network of one pod.
type Pod struct {
	fabric    *Fabric
	namespace *os.File
	address   netip.Addr
	port      netlink.Link // the bridge's end

	closing   sync.Once
	closed    error
	listeners []net.Listener
}

// Join creates the network of a pod. routes are addresses outside the subnet that the pod reaches through the machine.
func (f *Fabric) Join(routes ...netip.Addr) (*Pod, error) {
	namespace, err := newNamespace()
	if err != nil {
		return nil, err
	}
	p := &Pod{fabric: f, namespace: namespace}
	f.mu.Lock()
	p.address, err = f.addresses.take()
	f.lastPort++
	name := "pod" + strconv.Itoa(f.lastPort)
	f.mu.Unlock()
	if err != nil {
		namespace.Close()
		return nil, err
	}
	if err := p.plug(name, routes); err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

func (p *Pod) plug(name string, routes []netip.Addr) error {
	err := p.fabric.inside.LinkAdd(&netlink.Veth{
		LinkAttrs: netlink.LinkAttrs{Name: name, MasterIndex: p.fabric.bridge, Flags: net.FlagUp},
		PeerName:  "eth0", PeerNamespace: netlink.NsFd(p.namespace.Fd()),
	})
	if err != nil {
		return fmt.Errorf("joining a pod to the bridge: %w", err)
	}
	if p.port, err = p.fabric.inside.LinkByName(name); err != nil {
		return fmt.Errorf("finding the pod's interface: %w", err)
	}
	inside, err := netlink.NewHandleAt(netns.NsHandle(p.namespace.Fd()))
	if err != nil {
		return fmt.Errorf("opening the pod's network: %w", err)
	}
	defer inside.Close()
	loopback, err := inside.LinkByName("lo")
	if err != nil {
		return fmt.Errorf("finding the pod's loopback: %w", err)
	}
	if err := inside.LinkSetUp(loopback); err != nil {
		return fmt.Errorf("bringing the pod's loopback up: %w", err)
	}
	link, err := inside.LinkByName("eth0")
	if err != nil {
		return fmt.Errorf("finding the pod's interface: %w", err)
	}
	if err := inside.AddrAdd(link, address(p.address, p.fabric.addresses.subnet.Bits())); err != nil {
		return fmt.Errorf("giving the pod its address: %w", err)
	}
	if err := inside.LinkSetUp(link); err != nil {
		return fmt.Errorf("bringing the pod's interface up: %w", err)
	}
	for _, to := range routes {
		route := &netlink.Route{LinkIndex: link.Attrs().Index, Dst: address(to, 32).IPNet, Gw: p.fabric.gateway.AsSlice()}
		if err := inside.RouteAdd(route); err != nil && !errors.Is(err, syscall.EEXIST) {
			return fmt.Errorf("routing %s: %w", to, err)
		}
	}
	return nil
}

// Address is the pod's address.
func (p *Pod) Address() netip.Addr { return p.address }

// Namespace is the pod's network namespace, valid until Close.
func (p *Pod) Namespace() *os.File { return p.namespace }

// Listen listens inside the pod's network on an address that is added to its loopback. The caller serves the
// connections; the listener is closed with the pod.
func (p *Pod) Listen(at netip.AddrPort) (net.Listener, error) {
	handle, err := netlink.NewHandleAt(netns.NsHandle(p.namespace.Fd()))
	if err != nil {
		return nil, fmt.Errorf("opening the pod's network: %w", err)
	}
	defer handle.Close()
	loopback, err := handle.LinkByName("lo")
	if err != nil {
		return nil, fmt.Errorf("finding the pod's loopback: %w", err)
	}
	if err := handle.AddrAdd(loopback, address(at.Addr(), 32)); err != nil {
		return nil, fmt.Errorf("adding %s to the pod's loopback: %w", at.Addr(), err)
	}
	var listener net.Listener
	err = inside(p.namespace, func() error {
		listener, err = net.Listen("tcp4", at.String())
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("listening on %s in the pod's network: %w", at, err)
	}
	p.listeners = append(p.listeners, listener)
	return listener, nil
}

// Dial connects from inside the pod's network, so that it reaches what listens on the pod's loopback.
func (p *Pod) Dial(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
	var conn net.Conn
	err := inside(p.namespace, func() (err error) {
		conn, err = (&net.Dialer{}).DialContext(ctx, "tcp4", to.String())
		return err
	})
	return conn, err
}

// Close takes the pod's network down. Processes that are still in it keep a namespace without a way out.
func (p *Pod) Close() error {
	p.closing.Do(func() {
		for _, listener := range p.listeners {
			listener.Close()
		}
		if p.port != nil {
			if err := p.fabric.inside.LinkDel(p.port); err != nil {
				p.closed = fmt.Errorf("removing a pod from the bridge: %w", err)
			}
		}
		p.namespace.Close()
		p.fabric.mu.Lock()
		defer p.fabric.mu.Unlock()
		p.fabric.addresses.giveBack(p.address)
	})
	return p.closed
}
