package admission

import (
	"context"
	"sync"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/utils/clock"
)

const (
	// fewWrites a second are little, unless more than fewOpen wait to be written, or a write
	// takes longer than quickWrite on average: then the API server has more to do than it can,
	// be it for others.
	fewWrites  = 20
	fewOpen    = decisionsAtOnce
	quickWrite = 50 * time.Millisecond
	// news are late by lagWrites times what a write takes, as far as is known, and are not
	// waited for longer than longestLag. Each eviction costs the work of who goes and two writes
	// more, at a time when there are too many.
	lagWrites  = 20
	longestLag = 2 * time.Second
	// look is how long who waits for his turn sleeps at most before he looks again: nobody is
	// told when it gets quiet.
	look = 100 * time.Millisecond
	// fewCredits are kept for who looks again.
	fewCredits = 5
)

// allowance is what may be written of a kind that is for people.
type allowance struct {
	// perSecond and burst are while there is little else to write.
	perSecond rate.Limit
	burst     int
	// share of the writes for jobs is what there may be beside them while there is more, and
	// spare so many at once when it begins.
	share, spare float64
}

var (
	// Reasons and events together are less than a twentieth of all writes while there is more.
	allowedReasons = allowance{perSecond: 300, burst: 100, share: 0.035}
	allowedEvents  = allowance{perSecond: 50, burst: 200, share: 0.015}
	// Few queues never notice.
	allowedQueues = allowance{perSecond: rate.Inf, burst: 1, share: 0.03, spare: 20}
)

// purse is what is left of an allowance.
type purse struct {
	allowance
	quiet *rate.Limiter
	// credit is what has been earned by writes for jobs.
	credit float64
}

func newPurse(a allowance) *purse {
	return &purse{allowance: a, quiet: rate.NewLimiter(a.perSecond, a.burst), credit: a.spare}
}

// earn adds the share of so many writes for jobs. What nobody needs is not kept for later.
func (p *purse) earn(writes float64) {
	p.credit = min(p.credit+writes*p.share, max(p.spare, fewCredits))
}

// writeBudget keeps what is for people from taking the API server's time from what is
// for jobs: while admissions and evictions are many, reasons and events are few, and the
// numbers of queues follow later.
type writeBudget struct {
	clock clock.PassiveClock

	mu                      sync.Mutex
	reasons, events, queues *purse
	// began is the start of the second that is counted, now its writes, before those of
	// the second before it.
	began       time.Time
	now, before int
	// open is how many writes that are for a job are under way or wait, took how long they
	// take on average of late.
	open int
	took time.Duration
}

func newWriteBudget(clock clock.PassiveClock) *writeBudget {
	return &writeBudget{clock: clock, reasons: newPurse(allowedReasons), events: newPurse(allowedEvents), queues: newPurse(allowedQueues)}
}

// note counts a write that is for a job.
func (b *writeBudget) note() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.turn()
	b.now++
	b.earn(1)
}

func (b *writeBudget) earn(writes float64) {
	for _, p := range []*purse{b.reasons, b.events, b.queues} {
		p.earn(writes)
	}
}

// done tells how long a write that was noted took.
func (b *writeBudget) done(took time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.took += (took - b.took) / 8
}

// wants says how many writes that are for a job are under way or wait now.
func (b *writeBudget) wants(open int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.open = open
}

// turn begins a new second where one is over. A second of few writes earns as much as if it
// had had some more: though the API server answers to nobody for a while, something is told.
// The caller holds the lock.
func (b *writeBudget) turn() {
	past := b.clock.Since(b.began)
	if past >= 0 && past < time.Second {
		return
	}
	b.earn(float64(max(0, fewWrites-b.now)))
	if past < 0 || past >= 2*time.Second {
		b.began, b.now, b.before = b.clock.Now(), 0, 0
	} else {
		b.began, b.now, b.before = b.began.Add(time.Second), 0, b.now
	}
}

// waitForReason returns when a reason may be written, or with an error when the context ends.
func (b *writeBudget) waitForReason(ctx context.Context) error { return b.wait(ctx, b.reasons) }

// waitForQueue returns when the status of a queue may be written, or with an error when the context ends.
func (b *writeBudget) waitForQueue(ctx context.Context) error { return b.wait(ctx, b.queues) }

// waitForEvent returns when an event may be written, or with an error when the context ends.
func (b *writeBudget) waitForEvent(ctx context.Context) error { return b.wait(ctx, b.events) }

// mayTell reports whether an event may be written now.
func (b *writeBudget) mayTell() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	ok, _ := b.spend(b.events)
	return ok
}

func (b *writeBudget) wait(ctx context.Context, p *purse) error {
	for {
		b.mu.Lock()
		ok, later := b.spend(p)
		b.mu.Unlock()
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

// spend takes one from the purse, if one is left, or says when to ask again. The caller holds
// the lock.
func (b *writeBudget) spend(p *purse) (ok bool, later time.Duration) {
	if !b.isQuiet() {
		if p.credit < 1 {
			return false, look
		}
		p.credit--
		return true, 0
	}
	p.credit = max(p.credit, p.spare)
	now := b.clock.Now()
	turn := p.quiet.ReserveN(now, 1)
	if later = turn.DelayFrom(now); later > 0 {
		turn.CancelAt(now)
		return false, min(later, look)
	}
	return true, 0
}

// quiet reports whether there is little else to write.
func (b *writeBudget) quiet() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.isQuiet()
}

// isQuiet is the same for who holds the lock.
func (b *writeBudget) isQuiet() bool {
	b.turn()
	busy := max(b.now, b.before)
	return busy == 0 && b.open == 0 || busy <= fewWrites && b.open <= fewOpen && b.took <= quickWrite
}

// lag is how late news may be: not at all while it is quiet.
func (b *writeBudget) lag() time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.isQuiet() {
		return 0
	}
	return min(lagWrites*b.took, longestLag)
}
