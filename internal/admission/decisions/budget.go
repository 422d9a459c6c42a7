package decisions

import (
	"context"
	"sync"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/utils/clock"
)

const (
	// The API server is considered quiet up to fewWrites per second, unless more than fewOpen writes wait or a write
	// takes longer than quickWrite on average: then it is overloaded, even if by other clients.
	fewWrites  = 20
	fewOpen    = concurrentDecisions
	quickWrite = 50 * time.Millisecond
	// Watch events are assumed to be late by lagWrites times the duration of a write, at most longestLag. An eviction
	// costs the victim's work and two more writes, at a time when there are too many.
	lagWrites  = 20
	longestLag = 2 * time.Second
	// recheckInterval is the longest time that a waiting writer sleeps before it checks again: it is not notified
	// when the API server becomes quiet.
	recheckInterval = 100 * time.Millisecond
	// maxIdleCredit is how much credit is kept at most, so that a writer that checks again finds some.
	maxIdleCredit = 5
)

// allowance bounds one kind of write that only informs users.
type allowance struct {
	// perSecond and burst apply while the API server is quiet.
	perSecond rate.Limit
	burst     int
	// share applies while the API server is busy: the ratio to writes for jobs. spare is the credit with which a busy time
	// begins.
	share, spare float64
}

var (
	// While the API server is busy, reasons and events together are less than a twentieth of all writes.
	allowedReasons = allowance{perSecond: 300, burst: 100, share: 0.035}
	allowedEvents  = allowance{perSecond: 50, burst: 200, share: 0.015}
	// With few queues this limit is never reached.
	allowedQueues = allowance{perSecond: rate.Inf, burst: 1, share: 0.03, spare: 20}
)

// writeCredit is what is left of an allowance.
type writeCredit struct {
	allowance
	quiet *rate.Limiter
	// credit is earned by writes for jobs, one per write that is allowed.
	credit float64
}

func newWriteCredit(a allowance) *writeCredit {
	return &writeCredit{allowance: a, quiet: rate.NewLimiter(a.perSecond, a.burst), credit: a.spare}
}

// earn adds the share for that many writes for jobs. Credit beyond a small amount is not kept for later.
func (w *writeCredit) earn(writes float64) {
	w.credit = min(w.credit+writes*w.share, max(w.spare, maxIdleCredit))
}

// WriteBudget is what keeps writes that only inform users from delaying writes that jobs depend on. While there are
// many admissions and evictions, few reasons and events are written, and the status of queues follows later.
type WriteBudget struct {
	clock clock.PassiveClock

	mu                      sync.Mutex
	reasons, events, queues *writeCredit
	// began is the start of the current second, now the number of writes in it, before that in the previous second.
	began       time.Time
	now, before int
	// open is the number of writes for jobs that wait or are in flight, took their recent average duration.
	open int
	took time.Duration
}

// NewWriteBudget returns a budget that nothing was spent of.
func NewWriteBudget(clock clock.PassiveClock) *WriteBudget {
	return &WriteBudget{clock: clock, reasons: newWriteCredit(allowedReasons), events: newWriteCredit(allowedEvents),
		queues: newWriteCredit(allowedQueues)}
}

// noteWrite counts a write for a job.
func (w *WriteBudget) noteWrite() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.advance()
	w.now++
	w.earn(1)
}

func (w *WriteBudget) earn(writes float64) {
	for _, p := range []*writeCredit{w.reasons, w.events, w.queues} {
		p.earn(writes)
	}
}

// noteDuration records how long a noted write took.
func (w *WriteBudget) noteDuration(took time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.took += (took - w.took) / 8
}

// setOpen sets the number of writes for jobs that wait or are in flight.
func (w *WriteBudget) setOpen(open int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.open = open
}

// advance starts a new second if the current one is over. A second with few writes earns credit as if it had had
// fewWrites, so that something is reported even while the API server answers nobody. If the clock was set back, a new
// second starts, too: the present one would not end before the clock is where it was. The caller holds the lock.
func (w *WriteBudget) advance() {
	past := w.clock.Since(w.began)
	if past >= 0 && past < time.Second {
		return
	}
	w.earn(float64(max(0, fewWrites-w.now)))
	if past < 0 || past >= 2*time.Second {
		w.began, w.now, w.before = w.clock.Now(), 0, 0
	} else {
		w.began, w.now, w.before = w.began.Add(time.Second), 0, w.now
	}
}

// WaitForReason blocks until a pending reason may be written, or returns the context's error.
func (w *WriteBudget) WaitForReason(ctx context.Context) error { return w.wait(ctx, w.reasons) }

// WaitForQueue blocks until the status of a queue may be written, or returns the context's error.
func (w *WriteBudget) WaitForQueue(ctx context.Context) error { return w.wait(ctx, w.queues) }

// waitForEvent blocks until an event may be written, or returns the context's error.
func (w *WriteBudget) waitForEvent(ctx context.Context) error { return w.wait(ctx, w.events) }

// mayRecordEvent reports whether an event may be written now.
func (w *WriteBudget) mayRecordEvent() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	ok, _ := w.spend(w.events)
	return ok
}

func (w *WriteBudget) wait(ctx context.Context, p *writeCredit) error {
	for {
		w.mu.Lock()
		ok, later := w.spend(p)
		w.mu.Unlock()
		if ok {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(later):
		}
	}
}

// spend takes one write from the credit if it can, or else returns after which time to try again. The caller holds the
// lock.
func (w *WriteBudget) spend(p *writeCredit) (ok bool, later time.Duration) {
	if !w.isQuiet() {
		if p.credit < 1 {
			return false, recheckInterval
		}
		p.credit--
		return true, 0
	}
	p.credit = max(p.credit, p.spare)
	now := w.clock.Now()
	turn := p.quiet.ReserveN(now, 1)
	if later = turn.DelayFrom(now); later > 0 {
		turn.CancelAt(now)
		return false, min(later, recheckInterval)
	}
	return true, 0
}

// Quiet reports whether the API server has few other writes to do.
func (w *WriteBudget) Quiet() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.isQuiet()
}

// isQuiet implements quiet. The caller holds the lock.
func (w *WriteBudget) isQuiet() bool {
	w.advance()
	busy := max(w.now, w.before)
	return busy == 0 && w.open == 0 || busy <= fewWrites && w.open <= fewOpen && w.took <= quickWrite
}

// lag returns by how much watch events may be late, 0 while the API server is quiet.
func (w *WriteBudget) lag() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.isQuiet() {
		return 0
	}
	return min(lagWrites*w.took, longestLag)
}
