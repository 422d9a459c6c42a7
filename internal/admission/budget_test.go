package admission

import (
	"math"
	"testing"
	"time"

	"golang.org/x/time/rate"
	clocktesting "k8s.io/utils/clock/testing"
)

// TestWhatIsForPeopleGivesWay: what is for people waits for what is for jobs, be it much or be it
// slow to be written.
func TestWhatIsForPeopleGivesWay(t *testing.T) {
	for name, tc := range map[string]struct {
		writes, open    int
		took            time.Duration
		quiet           bool
		reasons, queues float64
	}{
		"nothing else to write": {0, 0, time.Second, true, reasonsPerSecond, math.MaxFloat64},
		"a little":              {fewWrites, fewOpen, quickWrite, true, reasonsPerSecond, math.MaxFloat64},
		"much":                  {400, 0, quickWrite, false, 16, 20},
		"little, since the API server takes so long": {10, fewOpen + 1, quickWrite, false, 0.8, 1},
		"little, and the API server is slow":         {10, 1, 2 * quickWrite, false, 0.8, 1},
		"nothing was written yet, and much is to be": {0, 1000, 0, false, 0.8, 1},
	} {
		t.Run(name, func(t *testing.T) {
			b := newWriteBudget(clocktesting.NewFakePassiveClock(now))
			for range tc.writes {
				b.note()
			}
			for range 100 {
				b.done(tc.took)
			}
			b.wants(tc.open)
			reasons, queues := b.limit(reasonsPerSecond, reasonsShare), b.limit(rate.Inf, queuesShare)
			if b.quiet() != tc.quiet || float64(reasons) != tc.reasons || float64(queues) != tc.queues {
				t.Errorf("quiet is %v, reasons may be %v a second and status of queues %v", b.quiet(), reasons, queues)
			}
		})
	}
}

// TestLateNewsAreWaitedFor: the longer the API server takes, the older is what was decided
// on; but nobody waits long, and while it is quiet nobody does.
func TestLateNewsAreWaitedFor(t *testing.T) {
	for took, want := range map[time.Duration]time.Duration{
		10 * time.Millisecond: 100 * time.Millisecond, 80 * time.Millisecond: 800 * time.Millisecond, time.Minute: longestLag,
	} {
		b := newWriteBudget(clocktesting.NewFakePassiveClock(now))
		for range 1000 {
			b.done(took)
		}
		if got := b.lag(); got != 0 {
			t.Errorf("it is quiet, and news are late by %s", got)
		}
		b.wants(fewOpen + 1)
		if got := b.lag(); got < want-time.Millisecond || got > want {
			t.Errorf("a write takes %s, and news are late by %s", took, got)
		}
	}
}
