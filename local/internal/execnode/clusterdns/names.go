package clusterdns

import (
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
)

// Source is what names are answered from. Both give what they have at once, without asking the API server.
type Source interface {
	// Service gives a service, or nil.
	Service(namespace, name string) *corev1.Service
	// Slices gives the endpoint slices of a service.
	Slices(namespace, service string) []*discoveryv1.EndpointSlice
}

// Answer is what a name stands for. A name that exists may have no address.
type Answer struct {
	Exists    bool
	Addresses []netip.Addr
	// Alias is set for a service that is another name (ExternalName), without a dot at its end.
	Alias string
}

// Zone is the names of one cluster.
type Zone struct {
	// Domain of the cluster, such as cluster.local.
	Domain string
	Source Source
}

// Holds says that a name (without a dot at its end) is the cluster's to answer.
func (z Zone) Holds(name string) bool {
	return name == z.Domain || strings.HasSuffix(name, "."+z.Domain)
}

// Resolve answers a name of the cluster, in lower case and without a dot at its end:
//
//	<service>.<namespace>.svc.<domain>              the service's ready pods
//	<hostname>.<service>.<namespace>.svc.<domain>   the pod of that hostname among them
//	<a-b-c-d>.<namespace>.pod.<domain>              the address a.b.c.d
//
// A service with a cluster IP is answered with its pods too: nothing here forwards from cluster IPs.
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
		// It has no pods; the node forwards from its cluster IP inside each pod.
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

// eachReady visits the endpoints that may be talked to. Those of a service that publishes not-ready addresses are all
// marked ready.
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
