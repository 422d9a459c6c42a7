package clusterdns

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
)

// Hosts returns the names that a pod of the namespace may use, as sorted lines of a hosts file. It is for pods that
// share the machine's network and so cannot use another DNS server. It includes the short names that the search path of
// a cluster's resolv.conf would find.
func (z Zone) Hosts(namespace string, services []*corev1.Service) string {
	names := map[string][]string{} // by address, in the order of services and pods
	add := func(answer Answer, full string) {
		for _, address := range answer.Addresses {
			names[address.String()] = append(names[address.String()], z.spellings(full, namespace)...)
		}
	}
	sorted := slices.SortedFunc(slices.Values(services), func(a, b *corev1.Service) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	for _, service := range sorted {
		full := service.Name + "." + service.Namespace + ".svc"
		var hostnames []string
		z.eachReady(service.Namespace, service.Name, func(endpoint discoveryv1.Endpoint) {
			if endpoint.Hostname != nil {
				hostnames = append(hostnames, *endpoint.Hostname)
			}
		})
		slices.Sort(hostnames)
		for _, hostname := range slices.Compact(hostnames) {
			add(z.host(service.Namespace, service.Name, hostname), hostname+"."+full)
		}
		if !isAPIServer(service) {
			add(z.service(service.Namespace, service.Name), full)
		}
	}
	var text strings.Builder
	for _, address := range slices.Sorted(maps.Keys(names)) {
		// One name a line: some resolvers read only the first few of a long line.
		for _, name := range names[address] {
			fmt.Fprintf(&text, "%s\t%s\n", address, name)
		}
	}
	return text.String()
}

// spellings are the ways to write <…>.<namespace>.svc from a pod of a namespace.
func (z Zone) spellings(full, from string) []string {
	withoutSuffix := strings.TrimSuffix(full, ".svc")
	list := []string{full + "." + z.Domain, full, withoutSuffix}
	if short, ok := strings.CutSuffix(withoutSuffix, "."+from); ok {
		list = append(list, short)
	}
	return list
}
