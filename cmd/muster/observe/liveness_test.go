package observe

import (
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
)

// TestLostReportsThatTheServerIsGoneAndBack: a server that responds with a refusal counts as present.
func TestLostReportsThatTheServerIsGoneAndBack(t *testing.T) {
	refuses := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) })
	server := httptest.NewServer(refuses)
	p, err := newLiveness(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.ask(t.Context()); err != nil {
		t.Errorf("a server that responds is reported lost: %v", err)
	}
	p.every = checkInterval / 500
	changes := make(chan struct{})
	go p.follow(t.Context(), func() { changes <- struct{}{} })
	server.Close()
	<-changes
	if p.lost() == nil {
		t.Error("a stopped server is not reported lost")
	}
	again := httptest.NewUnstartedServer(refuses)
	if again.Listener, err = net.Listen("tcp", server.Listener.Addr().String()); err != nil {
		t.Skipf("another process has the port by now: %v", err)
	}
	again.Start()
	defer again.Close()
	<-changes
	if err := p.lost(); err != nil {
		t.Errorf("a restarted server is still reported lost: %v", err)
	}
}

// TestLostReportsExpiredCredentials: after the token has expired no watch can be restarted, and nothing else reports
// that.
func TestLostReportsExpiredCredentials(t *testing.T) {
	server := httptest.NewServer(
		http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }))
	defer server.Close()
	p, err := newLiveness(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.ask(t.Context()); !apierrors.IsUnauthorized(err) {
		t.Errorf("error = %v, want Unauthorized", err)
	}
}
