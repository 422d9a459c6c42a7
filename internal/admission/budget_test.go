package admission

import (
	"math"
	"testing"

	"golang.org/x/time/rate"
	clocktesting "k8s.io/utils/clock/testing"
)

// TestWhatIsForPeopleGivesWay: what is for people waits for what is for jobs, be it much or be it
// slow to be written.
func TestWhatIsForPeopleGivesWay(t *testing.T) {
	for name, tc := range map[string]struct {
		writes, open    int
		quiet           bool
		reasons, queues float64
	}{
		"nothing else to write": {0, 0, true, reasonsPerSecond, math.MaxFloat64},
		"a little":              {fewWrites, fewOpen, true, reasonsPerSecond, math.MaxFloat64},
		"much":                  {400, 0, false, 20, 40},
		"little, since the API server takes so long": {10, fewOpen + 1, false, 1, 2},
		"nothing was written yet, and much is to be": {0, 1000, false, 1, 2},
	} {
		t.Run(name, func(t *testing.T) {
			b := newWriteBudget(clocktesting.NewFakePassiveClock(now))
			for range tc.writes {
				b.note()
			}
			b.wants(tc.open)
			reasons, queues := b.limit(reasonsPerSecond, reasonsShare), b.limit(rate.Inf, queuesShare)
			if b.quiet() != tc.quiet || float64(reasons) != tc.reasons || float64(queues) != tc.queues {
				t.Errorf("quiet is %v, reasons may be %v a second and status of queues %v", b.quiet(), reasons, queues)
			}
		})
	}
}
