package main

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
)

// leasesPath is in the path of every request about leases. The operator writes only its own.
const leasesPath = "/apis/" + coordinationv1.GroupName + "/"

// fence holds back the writes of a leader that has not renewed its lease in time, because its process or machine was
// paused, or because the API server did not answer: another operator may lead by now. Leader election alone notices
// that late: it tries to renew the lease for long, and the controllers go on meanwhile. Writes that are held back are
// made once the lease is renewed; if it is not, the process ends without them. An operator that has not led yet, or
// that needs no lease, is not held back.
type fence struct {
	// within is how long writes may go on after the last renewal.
	within time.Duration

	mu sync.Mutex
	// renewed is when the request of the last successful renewal was sent, zero before the first.
	renewed time.Time
	// nextRenewal is closed by the next renewal.
	nextRenewal chan struct{}
}

// fenceWrites makes all clients of the configuration respect a new fence.
func fenceWrites(cluster *rest.Config, within time.Duration) *fence {
	f := &fence{within: within, nextRenewal: make(chan struct{})}
	cluster.Wrap(func(next http.RoundTripper) http.RoundTripper { return fenced{fence: f, next: next} })
	return f
}

// leads reports whether no other operator can lead by now, so that what is not a write may go out too.
func (f *fence) leads() bool {
	open, _ := f.open()
	return open
}

// renew notes a renewal that was sent at that time.
func (f *fence) renew(sent time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.renewed = sent
	close(f.nextRenewal)
	f.nextRenewal = make(chan struct{})
}

// open reports whether writes may go on; if not, again is closed when that may have changed. The monotonic clock may
// stand still while the machine is paused, and the wall clock may be set back, so the longer time counts.
func (f *fence) open() (open bool, nextRenewal <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := time.Now()
	since := max(now.Sub(f.renewed), now.Round(0).Sub(f.renewed.Round(0)))
	return f.renewed.IsZero() || since < f.within, f.nextRenewal
}

// await returns when writes may go on, or with the error of the context.
func (f *fence) await(ctx context.Context) error {
	for {
		open, nextRenewal := f.open()
		if open {
			return nil
		}
		select {
		case <-nextRenewal:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// fenced is a transport whose writes respect the fence.
type fenced struct {
	*fence
	next http.RoundTripper
}

var _ utilnet.RoundTripperWrapper = fenced{}

// WrappedRoundTripper lets client-go cancel requests.
func (f fenced) WrappedRoundTripper() http.RoundTripper { return f.next }

// RoundTrip implements http.RoundTripper.
func (f fenced) RoundTrip(request *http.Request) (*http.Response, error) {
	switch {
	case request.Method == http.MethodGet:
	case strings.Contains(request.URL.Path, leasesPath):
		sent := time.Now()
		response, err := f.next.RoundTrip(request)
		if err == nil && response.StatusCode < http.StatusMultipleChoices {
			f.renew(sent)
		}
		return response, err
	default:
		if err := f.await(request.Context()); err != nil {
			if request.Body != nil {
				_ = request.Body.Close() // as the contract of RoundTrip demands
			}
			return nil, err
		}
	}
	return f.next.RoundTrip(request)
}
