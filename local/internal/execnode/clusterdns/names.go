package clusterdns

import (
	"context"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
)

// Source provides the objects that names resolve to, from memory, without requests to the API server.
type Source interface {
	// Service gives a service, or nil.
	Service(namespace, name string) *corev1.Service
	// Slices gives the endpoint slices of a service.
	Slices(namespace, service string) []*discoveryv1.EndpointSlice
	// Expects reports whether a pod of that hostname and subdomain is about to start here, and so to get an address.
	Expects(namespace, service, hostname string) bool
	// Changed returns a channel that is closed at the next change of any of these.
	Changed() <-chan struct{}
}

// Answer is what a name resolves to. A name that exists may have no address.
type Answer struct {
	Exists    bool
	Addresses []netip.Addr
	// Alias is the target of an ExternalName service, without a trailing dot.
	Alias string
}

// Zone is the names of one cluster.
type Zone struct {
	// Domain of the cluster, such as cluster.local.
	Domain string
	Source Source
}

// Holds reports whether a name (without a trailing dot) is in the cluster's domain.
func (z Zone) Holds(name string) bool {
	return name == z.Domain || strings.HasSuffix(name, "."+z.Domain)
}

// expected reports whether a name does not resolve yet but is about to.
func (z Zone) expected(name string) bool {
	labels := strings.Split(strings.TrimSuffix(name, ".svc."+z.Domain), ".")
	return len(labels) == 3 && z.Source.Expects(labels[2], labels[1], labels[0])
}

// Await resolves a name as Resolve does, but waits, until the context ends, for the address of a pod that is about to
// start. The pods of a gang start at the same time and look each other up at once; in a cluster they would have to
// retry now and then, and here almost always.
func (z Zone) Await(ctx context.Context, name string) Answer {
	for {
		changed := z.Source.Changed()
		answer := z.Resolve(name)
		if answer.Exists || !z.expected(name) {
			return answer
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return answer
		}
	}
}

// Resolve resolves a name of the cluster, in lower case and without a trailing dot:
//
//	<service>.<namespace>.svc.<domain>              the service's ready pods
//	<hostname>.<service>.<namespace>.svc.<domain>   the ready pod of that hostname
//	<a-b-c-d>.<namespace>.pod.<domain>              the address a.b.c.d
//
// A service with a cluster IP resolves to its pods too, since nothing here forwards from cluster IPs.
func (z Zone) Resolve(name string) Answer {
	if name == z.Domain {
		return Answer{Exists: true}
	}
	labels := strings.Split(strings.TrimSuffix(name, "."+z.Domain), ".")
	slices.Reverse(labels)
	if len(labels) == 1 && (labels[0] == "svc" || labels[0] == "pod") {
		return Answer{Exists: true}
	}
	switch {
	case len(labels) == 3 && labels[0] == "pod":
		address, err := netip.ParseAddr(strings.ReplaceAll(labels[2], "-", "."))
		if err != nil {
			return Answer{}
		}
		return Answer{Exists: true, Addresses: []netip.Addr{address}}
	case len(labels) == 3 && labels[0] == "svc":
		return z.service(labels[1], labels[2])
	case len(labels) == 4 && labels[0] == "svc":
		return z.host(labels[1], labels[2], labels[3])
	default:
		return Answer{}
	}
}

func (z Zone) service(namespace, name string) Answer {
	service := z.Source.Service(namespace, name)
	switch {
	case service == nil:
		return Answer{}
	case service.Spec.Type == corev1.ServiceTypeExternalName:
		return Answer{Exists: true, Alias: strings.TrimSuffix(service.Spec.ExternalName, ".")}
	case isAPIServer(service):
		// The service kubernetes has no pods; the node forwards from its cluster IP inside each pod.
		address, err := netip.ParseAddr(service.Spec.ClusterIP)
		return Answer{Exists: err == nil, Addresses: []netip.Addr{address}}
	}
	answer := Answer{Exists: true}
	z.eachReady(namespace, name, func(endpoint discoveryv1.Endpoint) {
		answer.add(endpoint)
	})
	return answer
}

func isAPIServer(service *corev1.Service) bool {
	return service.Namespace == corev1.NamespaceDefault && service.Name == "kubernetes"
}

func (z Zone) host(namespace, service, hostname string) Answer {
	var answer Answer
	z.eachReady(namespace, service, func(endpoint discoveryv1.Endpoint) {
		if endpoint.Hostname != nil && strings.EqualFold(*endpoint.Hostname, hostname) {
			answer.Exists = true
			answer.add(endpoint)
		}
	})
	return answer
}

// eachReady visits the ready endpoints. All endpoints of a service that publishes not-ready addresses are marked ready.
func (z Zone) eachReady(namespace, service string, visit func(discoveryv1.Endpoint)) {
	for _, slice := range z.Source.Slices(namespace, service) {
		if slice.AddressType != discoveryv1.AddressTypeIPv4 {
			continue
		}
		for _, endpoint := range slice.Endpoints {
			if endpoint.Conditions.Ready == nil || *endpoint.Conditions.Ready {
				visit(endpoint)
			}
		}
	}
}

func (a *Answer) add(endpoint discoveryv1.Endpoint) {
	for _, text := range endpoint.Addresses {
		if address, err := netip.ParseAddr(text); err == nil && !slices.Contains(a.Addresses, address) {
			a.Addresses = append(a.Addresses, address)
		}
	}
}
