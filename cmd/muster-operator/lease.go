package main

import (
	"fmt"
	"time"
)

const (
	// defaultLease is short enough for another operator to lead within five seconds of the leader's death; see termOf.
	// Lease renewals are few small requests, to which the chart's FlowSchema gives priority.
	defaultLease = 3 * time.Second

	// shutdownTimeout is how long runnables may take to stop; then the lease is released all the same. It is well
	// below a pod's termination grace period.
	shutdownTimeout = 5 * time.Second
)

// term has the timing of leader election.
type term struct {
	// lease is how long other candidates wait after the last renewal that they observed before they take over.
	lease time.Duration
	// renew is how long the leader tries to renew its lease before it exits, which must be before others take over.
	renew time.Duration
	// retry is the interval at which the leader renews and others check the lease. With client-go's jitter it is up to
	// 2.2 times as long, so a dead leader is replaced after at most lease + 4.4 retry.
	retry time.Duration
}

// termOf returns the timing for a lease duration, which must be in whole seconds as in the Lease API.
func termOf(lease time.Duration) (term, error) {
	if lease < time.Second || lease%time.Second != 0 {
		return term{}, fmt.Errorf("--leader-election-lease is %s, and must be whole seconds, at least one", lease)
	}
	return term{lease: lease, renew: lease * 2 / 3, retry: lease / 10}, nil
}
