package rendezvous

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	fakeclients "k8s.io/client-go/kubernetes/fake"
	"k8s.io/utils/clock"

	"github.com/musterhq/muster/internal/certificate"
)

// TestAnyClientTrustsTheServerOfReports: training code expects the host of its URL in the certificate, unlike agents.
// Each connection has one report, so that those who report do not keep agents from connecting.
func TestAnyClientTrustsTheServerOfReports(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	authority, err := certificate.OpenAuthority(t.Context(), fakeclients.NewClientset().CoreV1().Secrets("muster-system"),
		useFor(address), clock.RealClock{}, logr.Discard())
	if err != nil {
		t.Fatal(err)
	}
	s := &server{authority: authority, registry: newRegistry(clientOf(t)), log: logr.Discard(),
		reports: newReports(clientOf(t, world()...), clock.RealClock{}, logr.Discard()), leads: func() bool { return true },
		identify: func(_ context.Context, token string) (caller, error) {
			return caller{Namespace: "ns", Name: token, UID: "uid-" + token}, nil
		}}
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan struct{})
	go func() { defer close(served); _ = s.serve(ctx, listener) }()
	t.Cleanup(func() { stop(); <-served })
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM([]byte(authority.Trusted()))
	connected := 0
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots},
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			connected++
			return (&net.Dialer{}).DialContext(ctx, network, address)
		}}
	for range 3 {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://"+address+statusPath("a"),
			strings.NewReader(`{"trainerStatus":{"progressPercentage":50}}`))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Authorization", "Bearer a-0")
		response, err := (&http.Client{Transport: transport}).Do(request)
		if err != nil {
			t.Fatal(err)
		}
		if response.Body.Close(); response.StatusCode != http.StatusOK {
			t.Errorf("the report is answered %s", response.Status)
		}
	}
	if connected != 3 {
		t.Errorf("3 reports used %d connections, want one each", connected)
	}
}
