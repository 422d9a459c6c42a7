package calendar

import (
	"cmp"
	"slices"
	"time"

	"github.com/musterhq/muster/internal/engine/durations"
	"github.com/musterhq/muster/internal/engine/order"
)

// Entry is a workload that runs, or is about to run.
type Entry struct {
	Key order.Key
	// Forecast is how long it runs from Since on. Since is zero if it has not started yet: it is then expected to start
	// now, and nobody knows when its limit is.
	Forecast durations.Forecast
	Since    time.Time
	// Reported is when it ends according to its own reports of progress, zero if there are none.
	Reported time.Time

	// ends is when it is expected to end, as of the last Refresh. until is when that moves next, zero if it moves only
	// once the entry is overdue, or never. limit is when it is stopped, zero for never, or if it is overdue: it runs
	// beyond its limit, passed.
	ends, until, limit, passed time.Time
	// outlived is set once it has run beyond an end that it reported.
	outlived bool
}

// overdueAfter is how long a workload may take to end at its limit until nobody knows when it ends.
const overdueAfter = time.Minute

// EndsLaterThan reports whether the limit of the entry was raised, compared with an earlier entry of the same run.
func (e *Entry) EndsLaterThan(earlier *Entry) bool {
	return e.Since.Equal(earlier.Since) && !earlier.limit.IsZero() && e.passed.IsZero() &&
		(e.limit.IsZero() || e.limit.After(earlier.limit))
}

// Ends returns when the workload is expected to end.
func (e *Entry) Ends() time.Time { return e.ends }

// Limit returns when the workload is stopped at its limit, zero for never.
func (e *Entry) Limit() time.Time { return e.limit }

// By says which end of a workload counts.
type By int

const (
	// Expected: when the workload is expected to end.
	Expected By = iota
	// Limits: when the workload is stopped, whatever it still has to do. One without a limit has no such end.
	Limits
)

// End returns the end of the workload that counts, zero if it has none.
func (e *Entry) End(by By) time.Time {
	if by == Limits {
		return e.limit
	}
	return e.ends
}

// Calendar has the entries of workloads. Create one with New.
type Calendar struct {
	byKey map[order.Key]*Entry
	// sorted has the entries by each of their ends; those without such an end are not in the list.
	sorted [2][]*Entry
	// moving has the entries whose expected end moves before they are overdue, by when it moves next. The next entry to be
	// overdue is the first one by limits in sorted.
	moving order.Queue
	// version counts the changes.
	version int
}

// New returns an empty calendar.
func New() *Calendar { return &Calendar{byKey: map[order.Key]*Entry{}} }

// Version counts the changes of entries and of their ends.
func (c *Calendar) Version() int { return c.version }

// Len returns the number of entries.
func (c *Calendar) Len() int { return len(c.byKey) }

// Entry returns the entry of a workload, nil if it has none.
func (c *Calendar) Entry(key order.Key) *Entry { return c.byKey[key] }

// Put adds an entry, or replaces that of the same workload.
func (c *Calendar) Put(e Entry, now time.Time) {
	was := c.byKey[e.Key]
	if was != nil && was.Forecast == e.Forecast && was.Since.Equal(e.Since) && was.Reported.Equal(e.Reported) {
		return
	}
	c.Remove(e.Key)
	entry := &e
	entry.outlived = was != nil && was.Since.Equal(e.Since) && was.outlivesReport(now)
	c.byKey[e.Key] = entry
	if !e.Since.IsZero() {
		entry.limit = e.Forecast.Reached(e.Since)
	}
	c.place(entry, now)
	c.insert(entry, Limits)
	c.version++
}

// Overdue returns the limits beyond which workloads run that should have ended by the time.
func (c *Calendar) Overdue(by time.Time) (limits []time.Time) {
	for _, e := range c.byKey {
		if !e.passed.IsZero() {
			limits = append(limits, e.passed)
		} else if !e.limit.IsZero() && e.limit.Before(by) {
			limits = append(limits, e.limit)
		}
	}
	return limits
}

// Remove removes the entry of a workload, if it has one.
func (c *Calendar) Remove(key order.Key) {
	e := c.byKey[key]
	if e == nil {
		return
	}
	delete(c.byKey, key)
	c.moving.Remove(key)
	c.take(e, Expected)
	c.take(e, Limits)
	c.version++
}

// Refresh moves the ends that have moved by now.
func (c *Calendar) Refresh(now time.Time) {
	for e := c.takeMoved(now); e != nil; e = c.takeMoved(now) {
		c.take(e, Expected)
		c.take(e, Limits)
		e.outlived = e.outlivesReport(now)
		c.place(e, now)
		c.insert(e, Limits)
		c.version++
	}
}

// takeMoved returns an entry whose end has moved by now, and takes it off the moving ones; nil if there is none.
func (c *Calendar) takeMoved(now time.Time) *Entry {
	if next, some := c.moving.Peek(); some && !next.Since.After(now) {
		c.moving.Pop()
		return c.byKey[next.Key]
	}
	if overdue := c.nextOverdue(); !overdue.IsZero() && !overdue.After(now) {
		first := c.sorted[Limits][0]
		c.moving.Remove(first.Key)
		return first
	}
	return nil
}

// Moves returns when an expected end moves next, zero for never.
func (c *Calendar) Moves() time.Time {
	next, _ := c.moving.Peek()
	if overdue := c.nextOverdue(); next.Since.IsZero() || !overdue.IsZero() && overdue.Before(next.Since) {
		return overdue
	}
	return next.Since
}

// nextOverdue returns when the next entry is overdue, zero for never.
func (c *Calendar) nextOverdue() time.Time {
	if limited := c.sorted[Limits]; len(limited) > 0 {
		return limited[0].limit.Add(overdueAfter)
	}
	return time.Time{}
}

// place works out the expected end of an entry, and lists the entry by it.
func (c *Calendar) place(e *Entry, now time.Time) {
	if late := e.limit.Add(overdueAfter); !e.limit.IsZero() && !late.After(now) {
		e.passed, e.limit = e.limit, time.Time{}
	}
	e.ends, e.until = e.expected(now)
	c.insert(e, Expected)
	if !e.until.IsZero() {
		c.moving.Push(order.Rank{Since: e.until, Key: e.Key})
	}
}

// expected returns when the workload is expected to end, and until when that stays so, zero for always.
func (e *Entry) expected(now time.Time) (ends, until time.Time) {
	f, since := e.Forecast, e.Since
	if !e.passed.IsZero() {
		f.Limit = 0 // nobody enforces it
	}
	switch {
	case since.IsZero(): // it is expected to start now, whenever that is
		f.Limit, since = 0, now
		ends, _ = f.Ends(since, now)
		return ends, now.Add(max(f.Cautious/16, time.Second))
	case e.Reported.After(now) && !e.outlived: // who was wrong before is not believed again
		if limit := f.Reached(since); !limit.IsZero() && e.Reported.After(limit) {
			return limit, time.Time{}
		}
		return e.Reported, e.Reported
	}
	return f.Ends(since, now)
}

// outlivesReport reports whether the workload runs, or ever ran, beyond an end that it reported.
func (e *Entry) outlivesReport(now time.Time) bool {
	return e.outlived || !e.Reported.IsZero() && !e.Reported.After(now)
}

// insert lists the entry by one of its ends; take removes it there.
func (c *Calendar) insert(e *Entry, by By) {
	if !e.End(by).IsZero() {
		at, _ := slices.BinarySearchFunc(c.sorted[by], e, compare(by))
		c.sorted[by] = slices.Insert(c.sorted[by], at, e)
	}
}

func (c *Calendar) take(e *Entry, by By) {
	if at, found := slices.BinarySearchFunc(c.sorted[by], e, compare(by)); found {
		c.sorted[by] = slices.Delete(c.sorted[by], at, at+1)
	}
}

func compare(by By) func(a, b *Entry) int {
	return func(a, b *Entry) int { return cmp.Or(a.End(by).Compare(b.End(by)), order.CompareKeys(a.Key, b.Key)) }
}

// InOrder returns the entries that have such an end, the first to end first. The slice must be neither modified nor
// retained.
func (c *Calendar) InOrder(by By) []*Entry { return c.sorted[by] }

// Merge returns the entries of both calendars in order; one that is in both comes once.
func Merge(a, b *Calendar, by By) []*Entry {
	out := slices.Clone(a.sorted[by])
	for _, e := range b.sorted[by] {
		if a.byKey[e.Key] == nil {
			out = append(out, e)
		}
	}
	slices.SortFunc(out, compare(by))
	return out
}
