package execnode

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"os"
	"strconv"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/musterhq/muster/local/internal/execnode/clusterdns"
	"github.com/musterhq/muster/local/internal/execnode/podnet"
	"github.com/musterhq/muster/local/internal/execnode/process"
)

const loopback = "127.0.0.1"

// network is the pod network with its DNS server. Without one, pods use the machine's network.
type network struct {
	fabric *podnet.Fabric
	// address is the node's own address in the pods' network, where its DNS server is.
	address netip.Addr
}

// openNetwork creates a pod network if the machine and the user's rights allow it.
func (n *Node) openNetwork() error {
	why := "only root can make networks"
	switch {
	case os.Geteuid() != 0 || n.config.hostNetwork:
	case !n.isolation.Mounts || n.isolation.UserNamespace:
		why = "here not even root can make networks"
	default:
		fabric, err := podnet.Open()
		if err == nil {
			return n.serveNames(fabric)
		}
		why = err.Error()
	}
	n.config.Logf("node %s: pods share this machine's network (%s): two that listen on the same port clash", n.config.Name, why)
	return nil
}

func (n *Node) serveNames(fabric *podnet.Fabric) error {
	n.onStop(func() { fabric.Close() })
	address, release, err := fabric.HostAddress()
	if err != nil {
		return fmt.Errorf("joining the pods' network: %w", err)
	}
	n.onStop(release)
	server, err := clusterdns.Serve(address, n.zone())
	if err != nil {
		return err
	}
	n.onStop(func() { server.Close() })
	n.network = &network{fabric: fabric, address: address}
	return nil
}

func (n *Node) zone() clusterdns.Zone {
	return clusterdns.Zone{Domain: n.config.ClusterDomain, Source: n.cluster}
}

// newPodNetwork creates the network of a pod, with access to the machine and the API server, and from the machine's
// loopback to the pod's host ports.
func (n *Node) newPodNetwork(config *runtimeapi.PodSandboxConfig) (process.Network, error) {
	pod, err := n.network.fabric.Join(n.hostAddress)
	if err != nil {
		return nil, err
	}
	opened := &podNetwork{Pod: pod}
	if err := n.forwardAPIServer(pod); err != nil {
		opened.Close()
		return nil, err
	}
	for _, endpoint := range n.config.HostEndpoints {
		listener, err := pod.Listen(endpoint)
		if err != nil {
			opened.Close()
			return nil, err
		}
		go forward(listener, func(ctx context.Context) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "tcp4", endpoint.String())
		})
	}
	for _, port := range config.GetPortMappings() {
		if err := opened.forwardHostPort(port); err != nil {
			opened.Close()
			return nil, err
		}
	}
	return opened, nil
}

// podNetwork is the network of a pod with its host ports.
type podNetwork struct {
	*podnet.Pod
	hostPorts []net.Listener
}

// forwardHostPort listens on the machine's loopback, which is the node's address.
func (p *podNetwork) forwardHostPort(port *runtimeapi.PortMapping) error {
	if port.GetHostPort() == 0 {
		return nil
	}
	if port.GetProtocol() != runtimeapi.Protocol_TCP {
		return fmt.Errorf("hostPort %d is for %s: this node forwards TCP only", port.GetHostPort(), port.GetProtocol())
	}
	at := port.GetHostIp()
	if at == "" {
		at = loopback
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(at, strconv.Itoa(int(port.GetHostPort()))))
	if err != nil {
		return fmt.Errorf("hostPort %d: %w", port.GetHostPort(), err)
	}
	p.hostPorts = append(p.hostPorts, listener)
	target := netip.AddrPortFrom(p.Address(), uint16(port.GetContainerPort())).String()
	go forward(listener, func(ctx context.Context) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "tcp4", target)
	})
	return nil
}

// Close implements process.Network.
func (p *podNetwork) Close() error {
	for _, listener := range p.hostPorts {
		listener.Close()
	}
	return p.Pod.Close()
}

// forwardAPIServer lets clients in the pod reach the API server at its cluster IP: nothing else here forwards from
// cluster IPs, and the API server listens only on the machine's loopback.
func (n *Node) forwardAPIServer(pod *podnet.Pod) error {
	service := n.cluster.Service("default", "kubernetes")
	server, err := n.apiServer()
	if service == nil || err != nil || len(service.Spec.Ports) == 0 {
		return err
	}
	address, err := netip.ParseAddr(service.Spec.ClusterIP)
	if err != nil {
		return nil // a cluster without cluster IPs
	}
	listener, err := pod.Listen(netip.AddrPortFrom(address, uint16(service.Spec.Ports[0].Port)))
	if err != nil {
		return err
	}
	go forward(listener, func(ctx context.Context) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "tcp", server)
	})
	return nil
}

// apiServer is the host and port of the API server.
func (n *Node) apiServer() (string, error) {
	server, err := url.Parse(n.config.RestConfig.Host)
	if err != nil || server.Port() == "" {
		return "", fmt.Errorf("the API server's address %q is not a URL with a port", n.config.RestConfig.Host)
	}
	return server.Host, nil
}
