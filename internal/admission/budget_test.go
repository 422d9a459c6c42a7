package admission

import (
	"testing"

	clocktesting "k8s.io/utils/clock/testing"
)

// TestReasonsGiveWay: what is for people waits for what is for jobs, be it much or be it
// slow to be written.
func TestReasonsGiveWay(t *testing.T) {
	for name, tc := range map[string]struct {
		writes, open int
		quiet        bool
		perSecond    float64
	}{
		"nothing else to write": {0, 0, true, reasonsPerSecond},
		"a little":              {fewWrites, fewOpen, true, reasonsPerSecond},
		"much":                  {400, 0, false, 20},
		"little, since the API server takes so long": {10, fewOpen + 1, false, 1},
		"nothing was written yet, and much is to be": {0, 1000, false, 1},
	} {
		t.Run(name, func(t *testing.T) {
			b := newWriteBudget(clocktesting.NewFakePassiveClock(now))
			for range tc.writes {
				b.note()
			}
			b.wants(tc.open)
			if b.quiet() != tc.quiet || float64(b.limit()) != tc.perSecond {
				t.Errorf("quiet is %v, the limit %v", b.quiet(), b.limit())
			}
		})
	}
}
