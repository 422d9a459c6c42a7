package clusterdns

import (
	"context"
	"net"
	"net/netip"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/miekg/dns"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// cluster is a source with fixed content.
type cluster struct {
	services []*corev1.Service
	slices   []*discoveryv1.EndpointSlice
	expected string
	changed  chan struct{}

	mu sync.Mutex // guards fields that change during a test
}

func (c *cluster) Expects(namespace, service, hostname string) bool {
	return hostname+"."+service+"."+namespace == c.expected
}

func (c *cluster) Changed() <-chan struct{} { return c.changed }

func (c *cluster) Service(namespace, name string) *corev1.Service {
	for _, s := range c.services {
		if s.Namespace == namespace && s.Name == name {
			return s
		}
	}
	return nil
}

func (c *cluster) Slices(namespace, service string) []*discoveryv1.EndpointSlice {
	c.mu.Lock()
	defer c.mu.Unlock()
	var list []*discoveryv1.EndpointSlice
	for _, s := range c.slices {
		if s.Namespace == namespace && s.Labels[discoveryv1.LabelServiceName] == service {
			list = append(list, s)
		}
	}
	return list
}

func service(namespace, name string, spec corev1.ServiceSpec) *corev1.Service {
	return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: spec}
}

func endpoint(address, hostname string, ready bool) discoveryv1.Endpoint {
	e := discoveryv1.Endpoint{Addresses: []string{address}, Conditions: discoveryv1.EndpointConditions{Ready: &ready}}
	if hostname != "" {
		e.Hostname = &hostname
	}
	return e
}

func slice(namespace, service string, endpoints ...discoveryv1.Endpoint) *discoveryv1.EndpointSlice {
	return &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: service + "-x",
			Labels: map[string]string{discoveryv1.LabelServiceName: service}},
		AddressType: discoveryv1.AddressTypeIPv4, Endpoints: endpoints,
	}
}

var example = Zone{Domain: "cluster.local", Source: &cluster{
	services: []*corev1.Service{
		service("ml", "pytorch", corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone}),
		service("ml", "web", corev1.ServiceSpec{ClusterIP: "10.96.0.9"}),
		service("ml", "outside", corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "example.org"}),
		service("default", "kubernetes", corev1.ServiceSpec{ClusterIP: "10.96.0.1"}),
	},
	slices: []*discoveryv1.EndpointSlice{
		slice("ml", "pytorch", endpoint("10.64.0.2", "pytorch-workers-0-0", true),
			endpoint("10.64.0.3", "pytorch-workers-0-1", true)),
		slice("ml", "web", endpoint("10.64.0.4", "", true), endpoint("10.64.0.5", "", false)),
	},
}}

func addresses(texts ...string) (list []netip.Addr) {
	for _, text := range texts {
		list = append(list, netip.MustParseAddr(text))
	}
	return list
}

func TestNamesResolveAsInACluster(t *testing.T) {
	for name, want := range map[string]Answer{
		"pytorch-workers-0-0.pytorch.ml.svc.cluster.local": {Exists: true, Addresses: addresses("10.64.0.2")},
		"pytorch.ml.svc.cluster.local":                     {Exists: true, Addresses: addresses("10.64.0.2", "10.64.0.3")},
		"web.ml.svc.cluster.local":                         {Exists: true, Addresses: addresses("10.64.0.4")},
		"outside.ml.svc.cluster.local":                     {Exists: true, Alias: "example.org"},
		"kubernetes.default.svc.cluster.local":             {Exists: true, Addresses: addresses("10.96.0.1")},
		"10-64-0-7.ml.pod.cluster.local":                   {Exists: true, Addresses: addresses("10.64.0.7")},
		"cluster.local":                                    {Exists: true},
		"svc.cluster.local":                                {Exists: true},
		"pytorch-workers-0-9.pytorch.ml.svc.cluster.local": {},
		"pytorch.other.svc.cluster.local":                  {},
		"a.b.c.d.svc.cluster.local":                        {},
		"x.ml.pod.cluster.local":                           {},
	} {
		got := example.Resolve(name)
		if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestHostsFileHasTheNamesThatTheSearchPathWouldFind(t *testing.T) {
	got := example.Hosts("ml", example.Source.(*cluster).services)
	want := `10.64.0.2	pytorch-workers-0-0.pytorch.ml.svc.cluster.local
10.64.0.2	pytorch-workers-0-0.pytorch.ml.svc
10.64.0.2	pytorch-workers-0-0.pytorch.ml
10.64.0.2	pytorch-workers-0-0.pytorch
10.64.0.2	pytorch.ml.svc.cluster.local
10.64.0.2	pytorch.ml.svc
10.64.0.2	pytorch.ml
10.64.0.2	pytorch
10.64.0.3	pytorch-workers-0-1.pytorch.ml.svc.cluster.local
10.64.0.3	pytorch-workers-0-1.pytorch.ml.svc
10.64.0.3	pytorch-workers-0-1.pytorch.ml
10.64.0.3	pytorch-workers-0-1.pytorch
10.64.0.3	pytorch.ml.svc.cluster.local
10.64.0.3	pytorch.ml.svc
10.64.0.3	pytorch.ml
10.64.0.3	pytorch
10.64.0.4	web.ml.svc.cluster.local
10.64.0.4	web.ml.svc
10.64.0.4	web.ml
10.64.0.4	web
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("hosts of namespace ml (-want +got):\n%s", diff)
	}
}

func TestServerDistinguishesMissingNamesFromMissingAddresses(t *testing.T) {
	server, err := Serve(netip.MustParseAddr("127.88.0.53"), example)
	if err != nil {
		t.Skipf("this user may not use port 53: %v", err)
	}
	defer server.Close()
	for _, test := range []struct {
		name    string
		kind    uint16
		code    int
		answers int
	}{
		{"pytorch.ml.svc.cluster.local.", dns.TypeA, dns.RcodeSuccess, 2},
		{"PyTorch.ml.svc.cluster.local.", dns.TypeA, dns.RcodeSuccess, 2},
		{"pytorch.ml.svc.cluster.local.", dns.TypeAAAA, dns.RcodeSuccess, 0},
		{"nothing.ml.svc.cluster.local.", dns.TypeA, dns.RcodeNameError, 0},
		{"outside.ml.svc.cluster.local.", dns.TypeA, dns.RcodeSuccess, 1},
	} {
		for _, network := range []string{"udp", "tcp"} {
			client := &dns.Client{Net: network, Timeout: time.Minute}
			question := new(dns.Msg).SetQuestion(test.name, test.kind)
			reply, _, err := client.Exchange(question, net.JoinHostPort("127.88.0.53", "53"))
			if err != nil {
				t.Fatal(err)
			}
			if reply.Rcode != test.code || len(reply.Answer) != test.answers {
				t.Errorf("%s %s %s: code %d with %d answers, want %d with %d", network, test.name, dns.TypeToString[test.kind],
					reply.Rcode, len(reply.Answer), test.code, test.answers)
			}
		}
	}
}

func TestLookupWaitsForAStartingPod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := &cluster{expected: "late.set.ml", changed: make(chan struct{})}
		zone := Zone{Domain: "cluster.local", Source: source}
		time.AfterFunc(time.Second, func() {
			source.mu.Lock()
			source.slices = append(source.slices, slice("ml", "set", endpoint("10.64.0.9", "late", true)))
			source.mu.Unlock()
			close(source.changed)
		})
		ctx, cancel := context.WithTimeout(t.Context(), maxNameWait)
		defer cancel()
		began := time.Now()
		if other := zone.Await(ctx, "other.set.ml.svc.cluster.local"); other.Exists || time.Since(began) > 0 {
			t.Errorf("answer for an unexpected name = %+v after %v, want none at once", other, time.Since(began))
		}
		got := zone.Await(ctx, "late.set.ml.svc.cluster.local")
		if len(got.Addresses) != 1 || time.Since(began) != time.Second {
			t.Errorf("answer = %+v after %v, want one address after 1s", got, time.Since(began))
		}
	})
}

func TestLookupOfAPodThatNeverStartsFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		zone := Zone{Domain: "cluster.local", Source: &cluster{expected: "late.set.ml"}}
		ctx, cancel := context.WithTimeout(t.Context(), maxNameWait)
		defer cancel()
		began := time.Now()
		if got := zone.Await(ctx, "late.set.ml.svc.cluster.local"); got.Exists || time.Since(began) != maxNameWait {
			t.Errorf("answer = %+v after %v, want none after the longest wait", got, time.Since(began))
		}
	})
}
