package report

import (
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"
)

// TestStallIsTheTimeOfPassesWithoutResult: it begins with the first pass that decides nothing and leaves work, and ends
// with a decision or with rest.
func TestStallIsTheTimeOfPassesWithoutResult(t *testing.T) {
	now := clocktesting.NewFakePassiveClock(time.Unix(1_000_000, 0))
	s := &Stall{clock: now}
	pass := func(took time.Duration, decisions int, busy bool) {
		s.Begin(now.Now())
		now.SetTime(now.Now().Add(took))
		s.End(decisions, busy)
	}
	want := func(when string, seconds float64) {
		t.Helper()
		if got := s.seconds(); got != seconds {
			t.Errorf("%s: stalled for %v s, want %v", when, got, seconds)
		}
	}
	want("before the first pass", 0)
	pass(time.Second, 0, false)
	now.SetTime(now.Now().Add(time.Hour))
	want("at rest for an hour", 0)
	pass(time.Second, 3, true)
	want("after a pass that decided something", 0)
	pass(time.Second, 0, true)
	pass(2*time.Second, 0, true)
	want("after two passes without a decision", 3)
	s.Begin(now.Now())
	now.SetTime(now.Now().Add(10 * time.Second))
	want("during a pass that does not end", 13)
	s.End(0, true)
	now.SetTime(now.Now().Add(-time.Hour))
	want("after the clock was set back", 0)
	now.SetTime(now.Now().Add(2 * time.Hour))
	pass(time.Second, 1, true)
	want("after a decision", 0)
}
