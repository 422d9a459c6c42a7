package main

import (
	"fmt"
	"time"
)

const (
	// defaultLease has another operator lead within five seconds of the leader's death: see termOf. Leases are few small writes, and the
	// chart has the API server serve them before all else.
	defaultLease = 3 * time.Second

	// shutdownPatience is how long those who decide and write may take to end; then the lease is released all the same. It is well
	// below the time that a pod is given to end.
	shutdownPatience = 5 * time.Second
)

// term is how an operator leads.
type term struct {
	// lease is for how long others take it for alive since they last saw it renew its lease.
	lease time.Duration
	// renew is for how long it tries to renew its lease; then it ends, before others take it for dead.
	renew time.Duration
	// retry is how often it renews the lease, and others look at it: up to 2.2 times as rarely, at random. So who dies is followed
	// after at most lease + 4.4 retry.
	retry time.Duration
}

// termOf is that of a lease. API servers know leases of whole seconds.
func termOf(lease time.Duration) (term, error) {
	if lease < time.Second || lease%time.Second != 0 {
		return term{}, fmt.Errorf("--leader-election-lease is %s, and must be whole seconds, at least one", lease)
	}
	return term{lease: lease, renew: lease * 2 / 3, retry: lease / 10}, nil
}
