package decisions

import (
	"testing"
	"time"

	"github.com/musterhq/muster/internal/admission/admissiontest"
	clocktesting "k8s.io/utils/clock/testing"
)

func TestQuiet(t *testing.T) {
	for name, tc := range map[string]struct {
		writes, open int
		took         time.Duration
		quiet        bool
	}{
		"nothing else to write":            {0, 0, time.Second, true},
		"few writes":                       {fewWrites, fewOpen, quickWrite, true},
		"many writes":                      {400, 0, quickWrite, false},
		"few writes and many in flight":    {10, fewOpen + 1, quickWrite, false},
		"few and slow writes":              {10, 1, 2 * quickWrite, false},
		"no writes yet and many in flight": {0, 1000, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			b := NewWriteBudget(clocktesting.NewFakePassiveClock(admissiontest.Now))
			for range tc.writes {
				b.noteWrite()
			}
			for range 100 {
				b.noteDuration(tc.took)
			}
			b.setOpen(tc.open)
			if b.Quiet() != tc.quiet {
				t.Errorf("quiet = %v, want %v", b.Quiet(), tc.quiet)
			}
		})
	}
}

// spent counts the writes of each kind.
type spent struct{ jobs, reasons, events, queues int }

// informative returns the fraction of writes that only inform users.
func (s spent) informative() float64 {
	return float64(s.reasons+s.events) / float64(s.jobs+s.reasons+s.events+s.queues)
}

// load lets time pass with the given rate of writes for jobs, while all other writers write whatever the budget
// permits.
func load(b *WriteBudget, clock *clocktesting.FakePassiveClock, lasts time.Duration, jobs int) (out spent) {
	b.mu.Lock()
	defer b.mu.Unlock()
	const step = 10 * time.Millisecond
	for at := range int(lasts / step) {
		clock.SetTime(clock.Now().Add(step))
		for out.jobs < (at+1)*jobs/100 {
			b.advance()
			b.now++
			b.earn(1)
			out.jobs++
		}
		for p, n := range map[*writeCredit]*int{b.reasons: &out.reasons, b.events: &out.events, b.queues: &out.queues} {
			for range 1000 {
				if ok, _ := b.spend(p); !ok {
					break
				}
				*n++
			}
		}
	}
	return out
}

// TestWritesForUsersYieldToWritesForJobs: under load, writes that inform users are less than a twentieth of all writes,
// and they continue even if the API server does not answer.
func TestWritesForUsersYieldToWritesForJobs(t *testing.T) {
	for _, jobs := range []int{25, 100, 400, 2000} {
		clock := clocktesting.NewFakePassiveClock(admissiontest.Now)
		b := NewWriteBudget(clock)
		load(b, clock, 2*time.Second, jobs) // the load begins
		got := load(b, clock, time.Minute, jobs)
		if share := got.informative(); share > 0.05 || share < 0.03 {
			t.Errorf("%d writes for jobs per second: %.3f of all writes inform users, want 0.03 to 0.05: %+v", jobs, share, got)
		}
		if of := float64(got.queues) / float64(got.jobs); of > 0.035 || of < 0.025 {
			t.Errorf("%d writes for jobs per second: %.3f times as many of queue statuses, want 0.025 to 0.035: %+v", jobs, of, got)
		}
	}
	clock := clocktesting.NewFakePassiveClock(admissiontest.Now)
	b := NewWriteBudget(clock)
	b.setOpen(1000)
	load(b, clock, 2*time.Second, 0)
	if got := load(b, clock, time.Minute, 0); got.reasons < 30 || got.reasons > 60 || got.queues < 30 || got.queues > 45 {
		t.Errorf("the API server does not answer: writes = %+v, want 30 to 60 of reasons and 30 to 45 of queues", got)
	}
}

// TestManyReasonsAreWrittenPerSecondWhileQuiet: the rate is high while the API server is quiet, also after a time of
// load.
func TestManyReasonsAreWrittenPerSecondWhileQuiet(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(admissiontest.Now)
	b := NewWriteBudget(clock)
	if got := load(b, clock, time.Second, 0); got.reasons < 390 || got.reasons > 410 {
		t.Errorf("%d reasons were written within a second, want about 400", got.reasons)
	}
	load(b, clock, time.Minute, 400)
	load(b, clock, 2*time.Second, 0)
	if got := load(b, clock, time.Second, 0); got.reasons < 290 {
		t.Errorf("%d reasons were written in the second after the load, want at least 290", got.reasons)
	}
}

// TestEachTimeOfLoadBeginsWithSomeStatusesOfQueues, also if there was little time since the last one.
func TestEachTimeOfLoadBeginsWithSomeStatusesOfQueues(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(admissiontest.Now)
	b := NewWriteBudget(clock)
	for range 2 {
		b.setOpen(1000)
		if got := load(b, clock, 10*time.Millisecond, 0); got.queues < 20 || got.queues > 21 {
			t.Errorf("%d statuses of queues were written at the beginning of a load, want 20", got.queues)
		}
		b.setOpen(0)
		load(b, clock, 3*time.Second, 0)
	}
}

// TestEvictionsWaitForLateEventsUnderLoad: the slower the API server, the older the state on which the engine decided.
// The wait is bounded, and there is none while the API server is quiet.
func TestEvictionsWaitForLateEventsUnderLoad(t *testing.T) {
	for took, want := range map[time.Duration]time.Duration{
		10 * time.Millisecond: 200 * time.Millisecond, 80 * time.Millisecond: 1600 * time.Millisecond,
		time.Minute: longestLag,
	} {
		b := NewWriteBudget(clocktesting.NewFakePassiveClock(admissiontest.Now))
		for range 1000 {
			b.noteDuration(took)
		}
		if got := b.lag(); got != 0 {
			t.Errorf("lag = %s, want none while the API server is quiet", got)
		}
		b.setOpen(fewOpen + 1)
		if got := b.lag(); got < want-time.Millisecond || got > want {
			t.Errorf("lag = %[2]s if a write takes %[1]s, want %[3]s", took, got, want)
		}
	}
}

// TestAClockSetBackBeginsANewSecond: what was written before does not count for ever as written in this second.
func TestAClockSetBackBeginsANewSecond(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(admissiontest.Now)
	b := NewWriteBudget(clock)
	for range 10 * fewWrites {
		b.noteWrite()
	}
	if b.Quiet() {
		t.Fatal("many writes within a second count as few")
	}
	clock.SetTime(admissiontest.Now.Add(-time.Hour))
	if !b.Quiet() {
		t.Error("the writes from before the clock was set back still count")
	}
}
