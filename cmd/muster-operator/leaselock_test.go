package main

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// leaseServer is a lease on an API server, as one operator sees it.
type leaseServer struct {
	resourcelock.Interface
	mu      sync.Mutex
	record  *resourcelock.LeaderElectionRecord
	silent  bool // it does not answer
	changed bool // another operator has written the lease since this one read it
}

func (l *leaseServer) Get(context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.silent:
		return nil, nil, errors.New("it does not answer")
	case l.record == nil:
		return nil, nil, apierrors.NewNotFound(schema.GroupResource{Resource: "leases"}, "it")
	}
	l.changed = false
	copied := *l.record
	raw, err := json.Marshal(copied)
	return &copied, raw, err
}

func (l *leaseServer) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.Update(ctx, record)
}

func (l *leaseServer) Update(_ context.Context, record resourcelock.LeaderElectionRecord) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.silent || l.changed {
		return errors.New("it does not answer, or another one has written it")
	}
	l.record = &record
	return nil
}

// change changes the lease, or how the server answers.
func (l *leaseServer) change(to func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	to()
}

func (l *leaseServer) Identity() string   { return "this" }
func (l *leaseServer) Describe() string   { return "ns/it" }
func (l *leaseServer) RecordEvent(string) {}

// lead runs leader election on the server, and returns when it leads. leads is set to false when it no longer does; why
// is why the lock was lost.
func lead(ctx context.Context, t *testing.T, s *leaseServer) (leads *bool, why *error) {
	t.Helper()
	term, err := termOf(defaultLease)
	if err != nil {
		t.Fatal(err)
	}
	leads, why = new(bool), new(error)
	ctx, stop := context.WithCancel(ctx)
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock:          &lock{Interface: s, lease: term.lease, lost: func(cause error) { *why = cause; stop() }},
		LeaseDuration: term.patience + term.lease, RenewDeadline: term.patience, RetryPeriod: term.retry,
		ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) { *leads = true }, OnStoppedLeading: func() { *leads = false },
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	go elector.Run(ctx)
	synctest.Wait()
	if !*leads || s.record.LeaseDurationSeconds != 3 {
		t.Fatalf("leads = %t with the lease %+v, want one of 3 s", *leads, s.record)
	}
	return leads, why
}

// TestALeaderOutlivesAnAPIServerThatDoesNotAnswer: it ended after two seconds, as did the next one, and each start
// burdened the API server more.
func TestALeaderOutlivesAnAPIServerThatDoesNotAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		s := &leaseServer{}
		leads, why := lead(ctx, t, s)
		s.change(func() { s.silent = true })
		time.Sleep(50 * time.Second)
		s.change(func() { s.silent = false })
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if !*leads || *why != nil || time.Since(s.record.RenewTime.Time) > 2*time.Second {
			t.Errorf("leads = %t (lost: %v) with a lease renewed at %s, want it renewed", *leads, *why, s.record.RenewTime)
		}
		cancel()
		synctest.Wait()
		if *leads || s.record.HolderIdentity != "" || s.record.LeaseDurationSeconds != 1 {
			t.Errorf("after its end the lease is %+v, want it released", s.record)
		}
	})
}

// TestALeaderEndsWhenAnotherOneHasLed: also if that one no longer does, since its decisions are unknown to this one.
func TestALeaderEndsWhenAnotherOneHasLed(t *testing.T) {
	for _, holder := range []string{"another", ""} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			s := &leaseServer{}
			leads, why := lead(ctx, t, s)
			s.change(func() { s.silent = true })
			time.Sleep(10 * time.Second)
			s.change(func() {
				s.record = &resourcelock.LeaderElectionRecord{HolderIdentity: holder, LeaseDurationSeconds: 1}
				s.silent, s.changed = false, true
			})
			time.Sleep(10 * time.Second)
			synctest.Wait()
			if *leads || *why == nil || s.record.HolderIdentity != holder {
				t.Errorf("leads = %t (lost: %v) with the lease %+v, want it left to %q", *leads, *why, s.record, holder)
			}
		})
	}
}
