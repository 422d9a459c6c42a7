package engine

import (
	"time"

	"github.com/musterhq/muster/internal/engine/order"
)

// timers has a time for each of some workloads, none further off than the longest delay.
type timers struct {
	times   order.Queue
	longest time.Duration
}

func (t *timers) set(key Key, at time.Time) { t.times.Push(order.Rank{Since: at, Key: key}) }

func (t *timers) stop(key Key) { t.times.Remove(key) }

// first returns the first of the times, zero if there is none.
func (t *timers) first() time.Time {
	next, _ := t.times.Peek()
	return next.Since
}

// take removes and returns a workload whose time has come; ok is false if there is none. A time that is further off than
// the longest delay was set before the clock was set back, and has come.
func (t *timers) take(now time.Time) (_ Key, ok bool) {
	next, ok := t.times.Peek()
	if !ok || next.Since.After(now) && !next.Since.After(now.Add(t.longest)) {
		return Key{}, false
	}
	t.times.Pop()
	return next.Key, true
}
