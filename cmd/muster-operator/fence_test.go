package main

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"
)

// server counts the writes that reach it, other than those of leases, to which it answers with leases.
type server struct {
	writes, leases int
}

func (s *server) RoundTrip(request *http.Request) (*http.Response, error) {
	code := http.StatusOK
	switch {
	case strings.Contains(request.URL.Path, "/leases"):
		code = s.leases
	case request.Method != http.MethodGet:
		s.writes++
	}
	return &http.Response{StatusCode: code, Body: io.NopCloser(strings.NewReader(""))}, nil
}

// fencedClient returns a client of the server whose writes are held back after two seconds without a renewal.
func fencedClient(s *server) func(ctx context.Context, method, path string) error {
	var config rest.Config
	fenceWrites(&config, 2*time.Second)
	transport := config.WrapTransport(s)
	return func(ctx context.Context, method, path string) error {
		request, err := http.NewRequestWithContext(ctx, method, "https://cluster"+path, nil)
		if err != nil {
			return err
		}
		_, err = transport.RoundTrip(request)
		return err
	}
}

const (
	leasePath = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/muster.dev"
	podsPath  = "/api/v1/namespaces/a/pods"
)

func TestALeaderWritesOnlyWhileItsLeaseIsFresh(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{leases: http.StatusOK}
		do := fencedClient(s)
		ctx := t.Context()
		request := func(method, path string) {
			t.Helper()
			if err := do(ctx, method, path); err != nil {
				t.Errorf("%s %s: %v", method, path, err)
			}
		}
		time.Sleep(time.Hour)
		request(http.MethodPost, podsPath) // it has not led yet
		request(http.MethodPut, leasePath)
		time.Sleep(1900 * time.Millisecond)
		request(http.MethodPost, podsPath)
		if s.writes != 2 {
			t.Fatalf("%d writes before the pause, want 2", s.writes)
		}

		time.Sleep(10 * time.Second)
		go request(http.MethodPatch, podsPath)
		request(http.MethodGet, podsPath)
		s.leases = http.StatusConflict
		request(http.MethodPut, leasePath)
		synctest.Wait()
		if s.writes != 2 {
			t.Error("it wrote after a pause, without its lease")
		}
		s.leases = http.StatusOK
		request(http.MethodPut, leasePath)
		synctest.Wait()
		if s.writes != 3 {
			t.Errorf("%d writes once the lease is renewed, want 3: the one that was held back is lost", s.writes)
		}
	})
}

func TestAWriteThatIsHeldBackEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{leases: http.StatusCreated}
		do := fencedClient(s)
		if err := do(t.Context(), http.MethodPost, "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := do(ctx, http.MethodPost, podsPath); !errors.Is(err, context.DeadlineExceeded) || s.writes > 0 {
			t.Errorf("error %v and %d writes, want the deadline's and none", err, s.writes)
		}
	})
}
