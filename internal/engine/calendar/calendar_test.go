package calendar

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/musterhq/muster/internal/engine/durations"
	"github.com/musterhq/muster/internal/engine/order"
)

var start = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// TestTheCalendarIsASortedList: after any additions, removals and moves, the calendar has the entries of a list, each
// with the end that follows from its forecast and the time, in order; and it says when an end moves next.
func TestTheCalendarIsASortedList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, now := New(), start
		want := map[order.Key]Entry{}
		t.Repeat(map[string]func(*rapid.T){
			"put": func(t *rapid.T) {
				e := drawn(t, now)
				want[e.Key] = e
				c.Put(e, now)
			},
			"remove": func(t *rapid.T) {
				key := drawnKey(t)
				delete(want, key)
				c.Remove(key)
			},
			"time passes": func(t *rapid.T) {
				now = now.Add(time.Duration(rapid.IntRange(0, 7200).Draw(t, "seconds")) * time.Second)
				c.Refresh(now)
			},
			"": func(t *rapid.T) { check(t, c, want, now) },
		})
	})
}

func drawnKey(t *rapid.T) order.Key {
	return order.Key{Name: fmt.Sprint("w", rapid.IntRange(0, 5).Draw(t, "key"))}
}

func drawn(t *rapid.T, now time.Time) Entry {
	duration := func(what string) time.Duration {
		return time.Second * time.Duration(rapid.SampledFrom([]int{0, 1, 60, 3600}).Draw(t, what))
	}
	known := durations.Known{Limit: duration("limit"), Expected: duration("expected")}
	e := Entry{Key: drawnKey(t), Forecast: durations.Of(&known, durations.Bounds{}, nil)}
	if rapid.Bool().Draw(t, "has started") {
		e.Since = now.Add(-duration("ran"))
	}
	if rapid.Bool().Draw(t, "reports") {
		e.Reported = now.Add(duration("left"))
	}
	return e
}

func check(t *rapid.T, c *Calendar, want map[order.Key]Entry, now time.Time) {
	for _, by := range []By{Expected, Limits} {
		list := c.InOrder(by)
		if !slices.IsSortedFunc(list, compare(by)) {
			t.Fatalf("the ends by %d are not in order", by)
		}
		n := 0
		for key, e := range want {
			entry := c.Entry(key)
			if entry == nil {
				t.Fatalf("%s is not in the calendar", key)
			}
			if !entry.End(by).IsZero() {
				n++
			}
			limit := e.Forecast.Reached(e.Since)
			if !limit.IsZero() && !limit.Add(overdueAfter).After(now) {
				limit = time.Time{} // nobody knows when it ends
			}
			if by == Limits && !e.Since.IsZero() && !entry.Limit().Equal(limit) {
				t.Fatalf("%s is stopped at %s, want %s", key, entry.Limit(), limit)
			}
			if limit := entry.Limit(); by == Expected && !limit.IsZero() && entry.Ends().After(limit) {
				t.Fatalf("%s ends at %s, beyond its limit at %s", key, entry.Ends(), limit)
			}
		}
		if len(list) != n || by == Expected && n != len(want) {
			t.Fatalf("%d entries by %d, want %d of %d", len(list), by, n, len(want))
		}
	}
	if next := c.Moves(); !next.IsZero() && !next.After(now) {
		t.Fatalf("an end moves at %s, which is past at %s", next, now)
	}
	for _, e := range c.InOrder(Expected) {
		if !e.Ends().After(now) && e.Limit().IsZero() {
			t.Fatalf("%s has no limit, runs at %s, and is expected to have ended at %s", e.Key, now, e.Ends())
		}
	}
}

// TestWhoWasWrongIsNotBelievedAgain: a workload that ran beyond an end that it reported is expected to need as long
// again as it has run, whatever it reports then.
func TestWhoWasWrongIsNotBelievedAgain(t *testing.T) {
	c := New()
	says := func(now time.Time, left time.Duration) time.Duration {
		c.Put(Entry{Key: order.Key{Name: "w"}, Since: start, Reported: now.Add(left),
			Forecast: durations.Of(&durations.Known{Expected: time.Minute}, durations.Bounds{}, nil)}, now)
		return c.Entry(order.Key{Name: "w"}).Ends().Sub(now)
	}
	if left := says(start, time.Hour); left != time.Hour {
		t.Errorf("%s are left, want the hour that was reported", left)
	}
	if left := says(start.Add(10*time.Minute), 2*time.Hour); left != 2*time.Hour {
		t.Errorf("%s are left, want the two hours that were reported before the first end had come", left)
	}
	now := start.Add(3 * time.Hour)
	c.Refresh(now)
	if left := says(now, 20*time.Second); left < 3*time.Hour {
		t.Errorf("%s are left, want as long again as the three hours that it has run", left)
	}
	if late := c.Overdue(now); len(late) != 0 {
		t.Errorf("limits %v are overdue, and it has none", late)
	}
}

// TestALimitThatNobodyEnforcesIsNoLimit: a minute after it nobody knows when the workload ends.
func TestALimitThatNobodyEnforcesIsNoLimit(t *testing.T) {
	c, key := New(), order.Key{Name: "w"}
	known := durations.Known{Limit: time.Hour}
	c.Put(Entry{Key: key, Since: start, Forecast: durations.Of(&known, durations.Bounds{}, nil)}, start)
	c.Refresh(start.Add(time.Hour))
	if got := c.Entry(key).Limit(); !got.Equal(start.Add(time.Hour)) {
		t.Errorf("it is stopped at %s, want an hour after its start", got)
	}
	now := start.Add(time.Hour + overdueAfter)
	if next := c.Moves(); !next.Equal(now) {
		t.Errorf("its end moves at %s, want a minute after the limit", next)
	}
	c.Refresh(now)
	if e := c.Entry(key); !e.Limit().IsZero() || e.Ends().Sub(now) < time.Hour || len(c.Overdue(now)) != 1 {
		t.Errorf("the limit is %s, the end %s and overdue are %v; want no limit, as long again, and one", e.Limit(), e.Ends(),
			c.Overdue(now))
	}
}

// TestMergedCalendarsHaveEachWorkloadOnce: one that runs in a family and on nodes is in both.
func TestMergedCalendarsHaveEachWorkloadOnce(t *testing.T) {
	family, nodes := New(), New()
	entry := func(name string, limit time.Duration) Entry {
		known := durations.Known{Limit: limit}
		return Entry{Key: order.Key{Name: name}, Forecast: durations.Of(&known, durations.Bounds{}, nil), Since: start}
	}
	family.Put(entry("both", time.Hour), start)
	family.Put(entry("quota", 3*time.Hour), start)
	nodes.Put(entry("both", time.Hour), start)
	nodes.Put(entry("other", 2*time.Hour), start)
	var got []string
	for _, e := range Merge(family, nodes, Limits) {
		got = append(got, e.Key.Name)
	}
	if want := []string{"both", "other", "quota"}; !slices.Equal(got, want) {
		t.Errorf("merged: %v, want %v", got, want)
	}
}
