package admission

import (
	"context"
	"sync"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/utils/clock"
)

const (
	// reasonsPerSecond is how many reasons are written a second while there is little
	// else to write, and reasonsBurst how many at once.
	reasonsPerSecond = 50
	reasonsBurst     = 100
	// queuesBurst is how many status of queues may be written at once when there is more again:
	// few queues never notice.
	queuesBurst = 20
	// reasonsShare is the part of all writes that reasons have while there is more, and
	// queuesShare that of the status of queues. With what is written at once when it gets
	// busy, reasons stay under a twentieth.
	reasonsShare = 0.04
	queuesShare  = 0.05
	// fewWrites a second are little, unless more than fewOpen wait to be written, or a write
	// takes longer than quickWrite on average: then the API server has more to do than it can,
	// be it for others.
	fewWrites  = 20
	fewOpen    = decisionsAtOnce
	quickWrite = 50 * time.Millisecond
	// news are late by lagWrites times what a write takes, as far as is known, and are not
	// waited for longer than longestLag.
	lagWrites  = 10
	longestLag = time.Second
)

// writeBudget keeps what is for people from taking the API server's time from what is
// for jobs: while admissions and evictions are many, reasons are few, and the numbers of
// queues follow later.
type writeBudget struct {
	clock           clock.PassiveClock
	reasons, queues *rate.Limiter

	mu sync.Mutex
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
	return &writeBudget{clock: clock,
		reasons: rate.NewLimiter(reasonsPerSecond, reasonsBurst),
		queues:  rate.NewLimiter(rate.Inf, queuesBurst),
	}
}

// note counts a write that is for a job.
func (b *writeBudget) note() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.turn()
	b.now++
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

// turn begins a new second where one is over. The caller holds the lock.
func (b *writeBudget) turn() {
	switch past := b.clock.Since(b.began); {
	case past < 0 || past >= 2*time.Second:
		b.began, b.now, b.before = b.clock.Now(), 0, 0
	case past >= time.Second:
		b.began, b.now, b.before = b.began.Add(time.Second), 0, b.now
	}
}

// waitForReason returns when a reason may be written, or with an error when the context ends.
func (b *writeBudget) waitForReason(ctx context.Context) error {
	return b.wait(ctx, b.reasons, b.limit(reasonsPerSecond, reasonsShare))
}

// waitForQueue returns when the status of a queue may be written, or with an error when the context ends.
func (b *writeBudget) waitForQueue(ctx context.Context) error {
	return b.wait(ctx, b.queues, b.limit(rate.Inf, queuesShare))
}

func (b *writeBudget) wait(ctx context.Context, pace *rate.Limiter, limit rate.Limit) error {
	pace.SetLimitAt(b.clock.Now(), limit)
	return pace.Wait(ctx)
}

// quiet reports whether there is little else to write.
func (b *writeBudget) quiet() bool { return b.limit(rate.Inf, 0) == rate.Inf }

// lag is how late news may be: not at all while it is quiet.
func (b *writeBudget) lag() time.Duration {
	if b.quiet() {
		return 0
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return min(lagWrites*b.took, longestLag)
}

// limit is how many of a kind may be written a second now: so many while it is quiet, else
// that share of what is written for jobs.
func (b *writeBudget) limit(quiet rate.Limit, share float64) rate.Limit {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.turn()
	busy := max(b.now, b.before)
	if busy == 0 && b.open == 0 || busy <= fewWrites && b.open <= fewOpen && b.took <= quickWrite {
		return quiet
	}
	// Not less than of few: who waits for his turn would sleep on when it is quiet again.
	return rate.Limit(float64(max(busy, fewWrites)) * share)
}
