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
	// reasonsShare is the part of all writes that reasons have while there is more.
	reasonsShare = 0.05
	// fewWrites a second are little, unless more than fewOpen wait to be written: then the
	// API server has more to do than it can.
	fewWrites = 20
	fewOpen   = decisionsAtOnce
)

// writeBudget keeps what is for people from taking the API server's time from what is
// for jobs: while admissions and evictions are many, reasons are few.
type writeBudget struct {
	clock clock.PassiveClock
	pace  *rate.Limiter

	mu sync.Mutex
	// began is the start of the second that is counted, now its writes, before those of
	// the second before it.
	began       time.Time
	now, before int
	// open is how many writes that are for a job are under way or wait.
	open int
}

func newWriteBudget(clock clock.PassiveClock) *writeBudget {
	return &writeBudget{clock: clock, pace: rate.NewLimiter(reasonsPerSecond, reasonsBurst)}
}

// note counts a write that is for a job.
func (b *writeBudget) note() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.turn()
	b.now++
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

// wait returns when a reason may be written, or with an error when the context ends.
func (b *writeBudget) wait(ctx context.Context) error {
	b.pace.SetLimitAt(b.clock.Now(), b.limit())
	return b.pace.Wait(ctx)
}

// quiet reports whether there is little else to write.
func (b *writeBudget) quiet() bool { return b.limit() == reasonsPerSecond }

// limit is how many reasons a second may be written now.
func (b *writeBudget) limit() rate.Limit {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.turn()
	busy := max(b.now, b.before)
	if busy <= fewWrites && b.open <= fewOpen {
		return reasonsPerSecond
	}
	// Not less than one a second: who waits for his turn would sleep on when it is quiet again.
	return rate.Limit(float64(max(busy, fewWrites)) * reasonsShare)
}
