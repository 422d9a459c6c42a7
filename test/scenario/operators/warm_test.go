package operators

import (
	"context"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/musterhq/muster/test/scenario/harness"
)

// decisive are kinds that decisions need, each of which is read by another part of the operator.
var decisive = []string{"workloads", "pods", "jobsets", "workloadpriorityclasses"}

// TestOperatorIsNotReadyBeforeItsCachesSync: an operator that lacks one kind yet is not ready, however long it takes.
// Once it has that it is.
func TestOperatorIsNotReadyBeforeItsCachesSync(t *testing.T) {
	for _, kind := range decisive {
		t.Run(kind, func(t *testing.T) {
			w := newWorld(t)
			gate := w.throughGate(kind)
			running := w.operate()
			gate.untilAsked(t)
			refused := 0
			err := wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, harness.Patience,
				true, func(context.Context) (bool, error) {
					switch running.Readiness() { // there is nothing to subscribe to
					case http.StatusOK:
						t.Fatalf("it is ready, and has no %s yet", kind)
					case 0: // nobody answers yet
					default:
						refused++ // each answer takes a second, within which all else is read
					}
					return refused == 3, nil
				})
			if err != nil {
				t.Fatalf("it says whether it is ready %d times: %v", refused, err)
			}
			close(gate.open)
			running.AwaitReady(t)
		})
	}
}

// gate holds up who reads a kind.
type gate struct {
	kind  string
	open  chan struct{}
	asked chan struct{}
	once  sync.Once
}

// throughGate has the operators of the world reach the API server through a gate.
func (w *world) throughGate(kind string) *gate {
	w.Helper()
	g := &gate{kind: kind, open: make(chan struct{}), asked: make(chan struct{})}
	w.through(func(_ http.ResponseWriter, r *http.Request) bool { return g.pass(r) })
	return g
}

// through has the operators of the world reach the API server through a proxy, which passes on the requests that pass
// returns true for. The others are pass's to answer.
func (w *world) through(pass func(http.ResponseWriter, *http.Request) bool) {
	w.Helper()
	transport, err := rest.TransportFor(rest.AnonymousClientConfig(w.Cluster.Config)) // who asks shows a token of his own
	if err != nil {
		w.Fatal(err)
	}
	to, err := url.Parse(w.Cluster.Config.Host)
	if err != nil {
		w.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(to)
	proxy.Transport, proxy.FlushInterval = transport, -1
	proxy.ErrorLog = log.New(io.Discard, "", 0) // of operators that end
	server := httptest.NewTLSServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if pass(rw, r) {
			proxy.ServeHTTP(rw, r)
		}
	}))
	w.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	config, err := clientcmd.LoadFromFile(w.Cluster.Kubeconfig)
	if err != nil {
		w.Fatal(err)
	}
	for _, cluster := range config.Clusters {
		cluster.Server, cluster.CertificateAuthorityData, cluster.CertificateAuthority, cluster.InsecureSkipTLSVerify =
			server.URL, nil, "", true
	}
	kubeconfig := filepath.Join(w.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, kubeconfig); err != nil {
		w.Fatal(err)
	}
	through := *w.Cluster
	through.Kubeconfig = kubeconfig
	w.Cluster = &through
}

// pass reports whether a request may go on, and waits if it reads the kind while the gate is closed.
func (g *gate) pass(r *http.Request) bool {
	if r.Method != http.MethodGet || path.Base(r.URL.Path) != g.kind {
		return true
	}
	g.once.Do(func() { close(g.asked) })
	select {
	case <-g.open:
		return true
	case <-r.Context().Done():
		return false
	}
}

// untilAsked waits until somebody reads the kind.
func (g *gate) untilAsked(t *testing.T) {
	t.Helper()
	select {
	case <-g.asked:
	case <-time.After(harness.Patience):
		t.Fatalf("nobody reads %s", g.kind)
	}
}
