package main

import (
	"testing"
	"time"
)

func TestDeadLeaderIsReplacedWithinFiveSeconds(t *testing.T) {
	term, err := termOf(defaultLease)
	if err != nil {
		t.Fatal(err)
	}
	const jitter = 1.2                     // maximum jitter factor of client-go
	const decides = 600 * time.Millisecond // for a cluster of the benchmark's size
	if worst := term.lease + 2*time.Duration((1+jitter)*float64(term.retry)) + decides; worst >= 5*time.Second {
		t.Errorf("a new leader makes its first decision after %s, want less than 5 s", worst)
	}
	// Otherwise client-go rejects the term, or two operators could lead.
	if term.renew >= term.lease || float64(term.renew) <= jitter*float64(term.retry) {
		t.Errorf("term = %+v, which client-go rejects or which allows two leaders", term)
	}
	for _, wrong := range []time.Duration{0, -time.Second, 500 * time.Millisecond, 1500 * time.Millisecond} {
		if _, err := termOf(wrong); err == nil {
			t.Errorf("a lease of %s is accepted", wrong)
		}
	}
}

func TestProfilesNeedLoopbackOrAuthentication(t *testing.T) {
	for address, may := range map[string]bool{"127.0.0.1:8080": true, "localhost:8080": true, "[::1]:8080": true,
		":8080": false, "0.0.0.0:8080": false, "10.0.0.1:8080": false, "0": false} {
		if _, err := metricsServer(options{metricsAddress: address, profiling: true}); (err == nil) != may {
			t.Errorf("profiles at %s: error %v", address, err)
		}
		if out, err := metricsServer(options{metricsAddress: address, profiling: true, metricsSecure: true}); err == nil &&
			(out.FilterProvider == nil || !out.SecureServing) {
			t.Errorf("at %s profiles are served without authentication", address)
		} else if (err != nil) != (address == "0") {
			t.Errorf("profiles with authentication at %s: error %v", address, err)
		}
	}
}
