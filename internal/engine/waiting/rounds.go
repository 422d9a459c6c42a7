package waiting

import (
	"container/ring"
	"time"
)

// If an evaluation forgot something in its cause, the class would wait for ever beside free quota. The safety net
// bounds that: while there is nothing else to do, the owner of the room evaluates one blocked class after the other, in
// rounds. A class that fits, although nothing has made it ready, was missed, which shows a defect of the engine.

// rounds is the order in which blocked classes are checked.
type rounds struct {
	// all is a ring of the blocked classes, in which all itself marks the begin: the class to check next follows it.
	all ring.Ring
	due time.Time
}

// add adds a class that was just blocked, as the last one to check.
func (r *rounds) add(c *Class) {
	c.round.Value = c
	r.all.Prev().Link(&c.round)
}

// remove removes a class that is not blocked any more.
func (r *rounds) remove(c *Class) { c.round.Prev().Unlink(1) }

// CheckDue returns when the next class is to be checked, zero if none is blocked.
func (r *Room) CheckDue() time.Time {
	if r.rounds.all.Next() == &r.rounds.all {
		return time.Time{}
	}
	return r.rounds.due
}

// IsCheckDue reports whether a class is to be checked, one each interval, and notes when the next one is. An interval
// that is longer than that began before the clock was set back, and counts as over.
func (r *Room) IsCheckDue(now time.Time, every time.Duration) bool {
	left := r.rounds.due.Sub(now)
	if r.rounds.all.Next() == &r.rounds.all || left > 0 && left <= every {
		return false
	}
	r.rounds.due = now.Add(every)
	return true
}

// NextToCheck returns the next blocked class that may be evaluated now, and moves it to the end of the round; nil if
// there is none.
func (r *Room) NextToCheck(mayBe func(*Class) bool) *Class {
	for at := r.rounds.all.Next(); at != &r.rounds.all; at = at.Next() {
		if c := at.Value.(*Class); mayBe(c) {
			r.rounds.remove(c)
			r.rounds.add(c)
			return c
		}
	}
	return nil
}
