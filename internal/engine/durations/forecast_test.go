package durations

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

var start = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// TestForecastsFollowTheOrderOfSources: what the object says comes first, then what its kind took, then the default of
// the queue, then the limit. A limit bounds them all, and the smaller of two limits counts.
func TestForecastsFollowTheOrderOfSources(t *testing.T) {
	learned := NewLearner()
	for _, took := range []time.Duration{time.Minute, 2 * time.Minute, 3 * time.Minute, 4 * time.Minute} {
		learned.Note(&Known{Kind: "train", Wider: "ann"}, took)
	}
	hours := func(n time.Duration) time.Duration { return n * time.Hour }
	for name, tc := range map[string]struct {
		known  Known
		bounds Bounds
		want   Forecast
	}{
		"nothing": {want: Forecast{Usual: roundUp(Unknown), Cautious: roundUp(Unknown)}},
		"a limit": {known: Known{Limit: hours(2)},
			want: Forecast{Limit: hours(2), Usual: hours(2), Cautious: hours(2)}},
		"the smaller limit": {known: Known{Limit: hours(2)}, bounds: Bounds{Max: hours(1)},
			want: Forecast{Limit: hours(1), Usual: hours(1), Cautious: hours(1)}},
		"a limit of which a part is used": {known: Known{Limit: hours(2), Ran: hours(1)},
			want: Forecast{Limit: hours(1), Usual: hours(1), Cautious: hours(1)}},
		"a limit that is used up": {known: Known{Limit: hours(1), Ran: hours(2)},
			want: Forecast{Limit: time.Second, Usual: time.Second, Cautious: time.Second}},
		"a limit that begins anew beside one of which a part is used": {
			known: Known{Limit: hours(10), PerStart: hours(2), Ran: hours(1)},
			want:  Forecast{Limit: hours(2), Usual: hours(2), Cautious: hours(2)}},
		"one of which less is left": {known: Known{Limit: hours(3), PerStart: hours(2), Ran: hours(2)},
			want: Forecast{Limit: hours(1), Usual: hours(1), Cautious: hours(1)}},
		"the maximum of the queue beside a part that is used": {
			known: Known{Limit: hours(10), Ran: hours(1)}, bounds: Bounds{Max: hours(2)},
			want: Forecast{Limit: hours(2), Usual: hours(2), Cautious: hours(2)}},
		"the default before the limit": {known: Known{Limit: hours(5)}, bounds: Bounds{Default: time.Minute},
			want: Forecast{Limit: hours(5), Usual: roundUp(time.Minute), Cautious: roundUp(time.Minute)}},
		"the kind before the default": {known: Known{Kind: "train"}, bounds: Bounds{Default: hours(9)},
			want: Forecast{Usual: roundUp(3 * time.Minute), Cautious: roundUp(6 * time.Minute)}},
		"the wider kind of an unknown one": {known: Known{Kind: "eval", Wider: "ann"},
			want: Forecast{Usual: roundUp(3 * time.Minute), Cautious: roundUp(6 * time.Minute)}},
		"what it expects before its kind": {known: Known{Kind: "train", Expected: hours(1)},
			want: Forecast{Usual: roundUp(hours(1)), Cautious: roundUp(hours(1))}},
		"an estimate above the limit": {known: Known{Expected: hours(9), Limit: hours(1)},
			want: Forecast{Limit: hours(1), Usual: hours(1), Cautious: hours(1)}},
		"a negative limit": {known: Known{Limit: -time.Hour},
			want: Forecast{Usual: roundUp(Unknown), Cautious: roundUp(Unknown)}},
	} {
		if got := Of(&tc.known, tc.bounds, learned); got != tc.want {
			t.Errorf("%s: the forecast is %+v, want %+v", name, got, tc.want)
		}
	}
	if got := Of(&Known{Kind: "train"}, Bounds{}, nil); got.Usual != roundUp(Unknown) {
		t.Errorf("without a learner the forecast is %+v, want that of an unknown job", got)
	}
}

// TestTheInnerQueueComesFirst: a LocalQueue has its own default, and cannot raise the limit of its ClusterQueue.
func TestTheInnerQueueComesFirst(t *testing.T) {
	outer := Bounds{Max: time.Hour, Default: time.Minute}
	for inner, want := range map[Bounds]Bounds{
		{}:                                       outer,
		{Max: 2 * time.Hour}:                     outer,
		{Max: time.Minute, Default: time.Second}: {Max: time.Minute, Default: time.Second},
		{Default: 3 * time.Second}:               {Max: time.Hour, Default: 3 * time.Second},
	} {
		if got := inner.Within(outer); got != want {
			t.Errorf("%+v within %+v is %+v, want %+v", inner, outer, got, want)
		}
	}
}

// TestEndsStayAheadUntilTheLimit: a workload is never expected to have ended already, nor to run beyond its limit. What
// is expected stays the same until the time that is said with it, and later ends follow later times.
func TestEndsStayAheadUntilTheLimit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func(what string) time.Duration {
			return time.Duration(rapid.Int64Range(1, 1<<46).Draw(t, what))
		}
		known := Known{Expected: draw("expected")}
		if rapid.Bool().Draw(t, "has a limit") {
			known.Limit = draw("limit")
		}
		f := Of(&known, Bounds{}, nil)
		now := start.Add(draw("ran"))
		at, until := f.Ends(start, now)
		limit := f.Reached(start)
		switch {
		case !limit.IsZero() && at.After(limit):
			t.Fatalf("it ends at %s, beyond its limit at %s", at, limit)
		case limit.IsZero() && !at.After(now):
			t.Fatalf("it ended at %s, although it runs at %s", at, now)
		case until.IsZero():
			if !at.Equal(limit) {
				t.Fatalf("the end never moves, and is %s, want the limit %s", at, limit)
			}
			return
		case !until.After(now):
			t.Fatalf("the end moves at %s, which is past at %s", until, now)
		}
		between := now.Add(until.Sub(now) / 2)
		if again, _ := f.Ends(start, between); !again.Equal(at) {
			t.Fatalf("at %s the end is %s, and %s at %s, before it moves at %s", now, at, again, between, until)
		}
		if later, _ := f.Ends(start, until.Add(time.Second)); later.Before(at) {
			t.Fatalf("the end moves back from %s to %s", at, later)
		}
	})
}

// TestAJobThatOutlivesItsEstimateRunsAsLongAgain, at least five minutes more.
func TestAJobThatOutlivesItsEstimateRunsAsLongAgain(t *testing.T) {
	f := Of(&Known{Expected: 10 * time.Minute}, Bounds{}, nil)
	for ran, want := range map[time.Duration]time.Duration{
		time.Second: f.Cautious, 4 * time.Minute: f.Cautious, time.Hour: 2 * time.Hour, 6 * time.Minute: 12 * time.Minute,
	} {
		at, _ := f.Ends(start, start.Add(ran))
		if got := at.Sub(start); got < want || got > want*11/10+time.Minute {
			t.Errorf("after %s it is expected to run %s in all, want %s and some more", ran, got, want)
		}
	}
}

// TestNonsenseIsSurvived: absurd times neither overflow nor loop.
func TestNonsenseIsSurvived(t *testing.T) {
	f := Of(&Known{Expected: 1<<63 - 1}, Bounds{}, nil)
	if at, until := f.Ends(time.Time{}, start); !at.After(start) || !until.IsZero() {
		t.Errorf("a workload that started in the year 1 ends at %s, and that moves at %s", at, until)
	}
	if f.Cautious > 200*365*24*time.Hour {
		t.Errorf("the forecast is %s", f.Cautious)
	}
}
