package durations

import (
	"slices"
	"time"
)

// Known is what is known of the time of one workload, apart from what its queues say.
type Known struct {
	// Limit is the run time after which the workload is stopped, all its runs together, zero if it has none. Whoever owns
	// the limit enforces it; the engine never does.
	Limit time.Duration `json:",omitempty"`
	// PerStart is a limit that begins anew with each start, zero if there is none.
	PerStart time.Duration `json:",omitempty"`
	// Expected is how long the workload runs according to its object, zero if the object does not say.
	Expected time.Duration `json:",omitempty"`
	// Ran is for how long the workload ran before it was evicted. It counts toward the limit.
	Ran time.Duration `json:",omitempty"`
	// Kind names the workloads that are like this one: of the same namespace, creator, name without counters, and pods.
	// Wider names more of them: of the same namespace and creator. Both are empty if nothing is learned from it.
	Kind  string `json:",omitempty"`
	Wider string `json:",omitempty"`
	// Ends is when the workload ends according to its own reports of progress, zero if there are none.
	Ends time.Time `json:",omitzero"`
}

// Equal reports whether both say the same, apart from progress, which matters only while a workload runs.
func (k Known) Equal(other Known) bool {
	k.Ends, other.Ends = time.Time{}, time.Time{}
	return k == other
}

// Bounds are what a queue says of the times of its workloads. The zero value says nothing.
type Bounds struct {
	// Max is a limit for each workload of the queue, Default the estimate for those of which nothing else is known.
	Max     time.Duration `json:",omitempty"`
	Default time.Duration `json:",omitempty"`
}

// Within returns the bounds of a queue inside another one: the smaller maximum counts, and the inner default.
func (b Bounds) Within(outer Bounds) Bounds {
	out := b
	if out.Max == 0 || outer.Max > 0 && outer.Max < out.Max {
		out.Max = outer.Max
	}
	if out.Default == 0 {
		out.Default = outer.Default
	}
	return out
}

// Forecast is how long a workload runs once it has started. The zero value says that nothing is forecast, as in queues
// that do not plan.
type Forecast struct {
	// Limit is the run time after which it is stopped, zero if it has no limit.
	Limit time.Duration `json:",omitempty"`
	// Usual is the time within which three of four runs ended. It decides only who goes first among those that may pass.
	Usual time.Duration `json:",omitempty"`
	// Cautious is the time with which starts are planned: some more than nine of ten runs took. It is never above Limit.
	Cautious time.Duration `json:",omitempty"`
}

// Unknown is the forecast for a workload of which nothing at all is known.
const Unknown = time.Hour

// Of returns the forecast for a workload in a queue with these bounds. learned may be nil. What it ran before counts
// only toward Limit: the maximum of a queue begins anew with each start of some kinds of job, and for others the
// forecast is only longer than it could be. The first of these is the estimate: what the object says, what workloads of
// its kind took, the default of the queue, the limit, Unknown. Estimates are rounded up to steps, so that workloads
// that take about as long wait together.
func Of(known *Known, bounds Bounds, learned *Learner) Forecast {
	f := Forecast{}
	if known.Limit > 0 {
		f.Limit = max(known.Limit-max(0, known.Ran), time.Second)
	}
	for _, limit := range []time.Duration{known.PerStart, bounds.Max} {
		if limit > 0 && (f.Limit == 0 || limit < f.Limit) {
			f.Limit = limit
		}
	}
	switch usual, cautious, some := learned.About(known); {
	case known.Expected > 0:
		f.Usual, f.Cautious = known.Expected, known.Expected
	case some:
		f.Usual, f.Cautious = usual, cautious
	case bounds.Default > 0:
		f.Usual, f.Cautious = bounds.Default, bounds.Default
	case f.Limit > 0:
		f.Usual, f.Cautious = f.Limit, f.Limit
	default:
		f.Usual, f.Cautious = Unknown, Unknown
	}
	f.Usual, f.Cautious = roundUp(f.Usual), roundUp(f.Cautious)
	if f.Limit > 0 {
		f.Usual, f.Cautious = min(f.Usual, f.Limit), min(f.Cautious, f.Limit)
	}
	return f
}

// longest is longer than anything runs: times beyond it are nonsense.
const longest = 200 * 365 * 24 * time.Hour

// leastAhead is how much longer a workload runs at least that has outlived its forecast.
const leastAhead = 5 * time.Minute

// Ends returns when a workload that has run since then is expected to end, and until when that stays so, zero for
// always. It is never expected to run beyond its limit. Without a limit, one that outlives its forecast is expected to
// run as long again as it has run, where that time is rounded up to steps.
func (f Forecast) Ends(since, now time.Time) (at, until time.Time) {
	ends, limit := since.Add(f.Cautious), f.Reached(since)
	if f.Limit > 0 && f.Cautious >= f.Limit {
		return limit, time.Time{}
	}
	// How long it has run, rounded up, and the time until which as long again is not beyond the forecast.
	ran, _ := slices.BinarySearch(steps, max(time.Second, min(now.Sub(since), longest)+1))
	if ran == len(steps) {
		return now.Add(now.Sub(since)), time.Time{} // its start is nonsense
	}
	beyond, _ := slices.BinarySearchFunc(steps, f.Cautious, func(step, cautious time.Duration) int {
		if step+max(leastAhead, step) > cautious {
			return 1
		}
		return -1
	})
	if ran < beyond {
		return ends, since.Add(steps[beyond-1])
	}
	again := since.Add(steps[ran] + max(leastAhead, steps[ran]))
	if f.Limit > 0 && !again.Before(limit) {
		return limit, time.Time{}
	}
	return again, since.Add(steps[ran])
}

// Reached returns when a workload that has run since then is stopped at its limit, zero if it has none.
func (f Forecast) Reached(since time.Time) time.Time {
	if f.Limit <= 0 {
		return time.Time{}
	}
	return since.Add(f.Limit)
}

// steps are the durations to which estimates are rounded up: from one second, each a tenth longer than the one before.
var steps = func() (out []time.Duration) {
	for d := time.Second; d < 100*365*24*time.Hour; d += max(d/10, time.Second).Truncate(time.Second) {
		out = append(out, d)
	}
	return out
}()

// roundUp returns the first step that is not shorter.
func roundUp(d time.Duration) time.Duration {
	at, _ := slices.BinarySearch(steps, d)
	return steps[min(at, len(steps)-1)]
}
