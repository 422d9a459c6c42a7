package waiting

import (
	"time"

	"github.com/musterhq/muster/internal/engine/order"
)

// Some who wait need no event, but time: their time is kept here, once for all reasons.

// Timer is why time matters to a workload or a queue.
type Timer int

const (
	// RetryRefused: a decision that the API server rejected is tried again.
	RetryRefused Timer = iota
	// ForgetAvoided: nodes that kube-scheduler refused are not avoided any longer.
	ForgetAvoided
	// Grow: a workload of the queue, whose name is the key, may grow.
	Grow
	// Replan: an expected end has moved in the family whose name is the key, and with it a planned start; or the time of a
	// planned start has come.
	Replan
	timers
)

// Timers has the times at which something changes for those who wait. The zero value is ready to use.
type Timers struct {
	// Longest bounds how far off a time can be, zero for no bound. A time that is further off was set before the clock was
	// set back, and has come.
	Longest [timers]time.Duration
	due     [timers]order.Queue
}

// Set sets the time of a key.
func (t *Timers) Set(timer Timer, key order.Key, at time.Time) {
	t.due[timer].Push(order.Rank{Since: at, Key: key})
}

// SetEarlier sets the time of a key unless it has an earlier one.
func (t *Timers) SetEarlier(timer Timer, key order.Key, at time.Time) {
	if was, known := t.due[timer].Rank(key); !known || at.Before(was.Since) {
		t.Set(timer, key, at)
	}
}

// Stop forgets the time of a key, if it has one.
func (t *Timers) Stop(timer Timer, key order.Key) { t.due[timer].Remove(key) }

// Due returns the first of the times, zero if there is none.
func (t *Timers) Due() (first time.Time) {
	for timer := range t.due {
		if next := t.First(Timer(timer)); !next.IsZero() && (first.IsZero() || next.Before(first)) {
			first = next
		}
	}
	return first
}

// First returns the first time of a kind, zero if there is none.
func (t *Timers) First(timer Timer) time.Time {
	next, _ := t.due[timer].Peek()
	return next.Since
}

// Take removes and returns a key whose time has come; ok is false if there is none.
func (t *Timers) Take(timer Timer, now time.Time) (_ order.Key, ok bool) {
	next, ok := t.due[timer].Peek()
	longest := t.Longest[timer]
	if !ok || next.Since.After(now) && (longest == 0 || !next.Since.After(now.Add(longest))) {
		return order.Key{}, false
	}
	t.due[timer].Pop()
	return next.Key, true
}

// Len returns the number of keys that have a time.
func (t *Timers) Len() (sum int) {
	for timer := range t.due {
		sum += t.due[timer].Len()
	}
	return sum
}
