package engine

import (
	"container/ring"
	"maps"
	"slices"
	"time"

	"github.com/musterhq/muster/internal/engine/reason"
)

// A blocked class is evaluated again when something changes that its last evaluation depended on. If the engine forgot one
// of these dependencies, the class would wait for ever beside free quota. The safety net bounds that: while the engine is
// at rest, it evaluates one blocked class after the other, one each Options.CheckWaitingEvery. A class that fits, although
// nothing has made it ready, was missed: it is made ready, and counted, since it shows a defect of the engine.

// safetyNet is the order in which blocked classes are checked, and when the next one is due.
type safetyNet struct {
	// rounds is a ring of the blocked classes, in which the safety net itself marks the begin: the class to check next
	// follows it.
	rounds ring.Ring
	due    time.Time
}

// add adds a class that was just blocked, as the last one to check.
func (s *safetyNet) add(c *class) {
	c.round.Value = c
	s.rounds.Prev().Link(&c.round)
}

// next returns the next class for which check holds, nil if there is none, and moves it to the end.
func (s *safetyNet) next(check func(*class) bool) *class {
	for r := s.rounds.Next(); r != &s.rounds; r = r.Next() {
		if c := r.Value.(*class); check(c) {
			r.Prev().Unlink(1)
			s.add(c)
			return c
		}
	}
	return nil
}

// any reports whether any class is blocked.
func (s *safetyNet) any() bool { return s.rounds.Next() != &s.rounds }

// CheckWaiting evaluates one class of waiting workloads that should still have to wait, at most once each
// Options.CheckWaitingEvery, and only while the engine is at rest; checked reports whether it did. It returns the workloads
// that waited although they could have been admitted, or others evicted for them; the next Decide evaluates these. There
// should never be any: each shows a defect of the engine.
func (e *Engine) CheckWaiting(now time.Time) (missed []Key, checked bool) {
	if e.options.CheckWaitingEvery <= 0 || !e.safety.any() || e.Busy() {
		return nil, false
	}
	now = now.Round(0)
	if now.Before(e.safety.due) && e.safety.due.Sub(now) <= e.options.CheckWaitingEvery {
		return nil, false
	}
	e.safety.due = now.Add(e.options.CheckWaitingEvery)
	return append(e.missedFamilies(), e.missedClass()...), true
}

// missedClass evaluates the next blocked class.
func (e *Engine) missedClass() []Key {
	c := e.safety.next(e.mayBeNext)
	if c == nil || e.reevaluate(c).verdict == hopeless {
		return nil
	}
	c.queue.unblock(c)
	return []Key{c.head().Key}
}

// mayBeNext reports whether the class is not behind another one, and its queue may admit workloads.
func (e *Engine) mayBeNext(c *class) bool {
	q := c.queue
	return (q.Strategy != Strict || c == q.head) && c.heldBy == nil && q.fault().Code == reason.None && e.mustWait(q).Code == reason.None
}

// missedFamilies puts the families on the agenda that have something to evaluate and are not on it, and returns the first
// workload of each.
func (e *Engine) missedFamilies() (missed []Key) {
	for _, name := range slices.Sorted(maps.Keys(e.families)) {
		f := e.families[name]
		if f.dirty || !e.hasWork(f) {
			continue
		}
		f.enqueue()
		for _, q := range f.queues {
			if e.open(q) && e.mustWait(q).Code == reason.None {
				missed = append(missed, q.ready.First().head().Key)
				break
			}
		}
	}
	return missed
}

// CheckDue returns when CheckWaiting has something to do, zero for never. It is known after the first call of
// CheckWaiting.
func (e *Engine) CheckDue() time.Time {
	if e.options.CheckWaitingEvery <= 0 || !e.safety.any() {
		return time.Time{}
	}
	return e.safety.due
}
