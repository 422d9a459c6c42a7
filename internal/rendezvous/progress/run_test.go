package progress

import (
	"testing"
	"time"
)

var start = time.Date(2026, 11, 30, 14, 0, 0, 0, time.UTC)

// at returns the time so many minutes and seconds after the start.
func at(minutes, seconds int) time.Time {
	return start.Add(time.Duration(minutes)*time.Minute + time.Duration(seconds)*time.Second)
}

// remaining is a report of the remaining seconds, percent one of the percentage, both at a minute by a pod with an
// index.
func remaining(minute, index int, seconds int64) said {
	return said{at(minute, 0), Rank{Index: []int{index}}, &Status{EstimatedRemainingSeconds: &seconds}}
}

func percent(minute, index int, percentage int64) said {
	return said{at(minute, 0), Rank{Index: []int{index}}, &Status{ProgressPercentage: &percentage}}
}

// said is a report of one pod.
type said struct {
	at     time.Time
	rank   Rank
	status *Status
}

func TestTheLowestRankThatReportedRecentlyIsHeard(t *testing.T) {
	for what, test := range map[string]struct {
		reports []said
		want    time.Time // zero for no end
	}{
		"nobody":                             {nil, time.Time{}},
		"the only pod":                       {[]said{remaining(0, 3, 600)}, at(10, 0)},
		"the last report of a pod":           {[]said{remaining(0, 0, 600), remaining(1, 0, 1200)}, at(21, 0)},
		"a lower rank replaces a higher one": {[]said{remaining(0, 3, 600), remaining(1, 0, 1200)}, at(21, 0)},
		"a higher rank is not heard":         {[]said{remaining(0, 0, 600), remaining(4, 3, 1)}, at(10, 0)},
		"a higher rank, once the lower one has been silent": {
			[]said{remaining(0, 0, 600), remaining(5, 3, 1200)}, at(25, 0)},
		"the lower rank again": {
			[]said{remaining(0, 0, 600), remaining(5, 3, 1200), remaining(6, 0, 60)}, at(7, 0)},
		"metrics alone say nothing": {[]said{{at(0, 0), Rank{}, &Status{Metrics: []Metric{{"a", "b"}}}}}, time.Time{}},
	} {
		var run Run
		for _, report := range test.reports {
			run.Take(report.rank, report.status, report.at)
		}
		if end, known := run.End(); known == test.want.IsZero() || known && !end.Equal(test.want) {
			t.Errorf("%s: end %s (known: %t), want %s", what, end, known, test.want)
		}
	}
}

func TestRanksAreOrderedByIndexThenByName(t *testing.T) {
	ordered := []Rank{{[]int{0}, "b"}, {[]int{0, 1}, "a"}, {[]int{0, 2}, "a"}, {[]int{1, 0}, "a"}, {nil, "a"}, {nil, "b"}}
	for i := range ordered {
		for j := range ordered {
			if got := ordered[i].Compare(ordered[j]); (got < 0) != (i < j) || (got == 0) != (i == j) {
				t.Errorf("%v and %v: %d", ordered[i], ordered[j], got)
			}
		}
	}
}

func TestTheEndFollowsFromThePaceOfPercentages(t *testing.T) {
	for what, test := range map[string]struct {
		reports []said
		want    time.Time
	}{
		"one percentage has no pace":  {[]said{percent(0, 0, 0)}, time.Time{}},
		"the same one again has none": {[]said{percent(0, 0, 5), percent(9, 0, 5)}, time.Time{}},
		"10 % in 10 minutes":          {[]said{percent(0, 0, 0), percent(10, 0, 10)}, at(100, 0)},
		"from a checkpoint at 40 %":   {[]said{percent(0, 0, 40), percent(10, 0, 50)}, at(60, 0)},
		"done":                        {[]said{percent(0, 0, 40), percent(7, 0, 100)}, at(7, 0)},
		"back behind the first one": {
			[]said{percent(0, 0, 40), percent(10, 0, 50), percent(20, 0, 10), percent(30, 0, 20)}, at(110, 0)},
		"back, and not behind the first one": {[]said{percent(0, 0, 0), percent(10, 0, 50), percent(20, 0, 20)}, at(100, 0)},
		"the remaining time comes first": {
			[]said{percent(0, 0, 0), {at(10, 0), Rank{Index: []int{0}}, &Status{ProgressPercentage: new(int64(10)),
				EstimatedRemainingSeconds: new(int64(60))}}}, at(11, 0)},
	} {
		var run Run
		for _, report := range test.reports {
			run.Take(report.rank, report.status, report.at)
		}
		if end, known := run.End(); known == test.want.IsZero() || known && !end.Equal(test.want) {
			t.Errorf("%s: end %s (known: %t), want %s", what, end, known, test.want)
		}
	}
}

func TestAnEndIsWrittenWhenItHasMovedByATenth(t *testing.T) {
	now := at(0, 0)
	for what, test := range map[string]struct {
		written, end time.Time
		want         bool
	}{
		"never written":                       {time.Time{}, at(100, 0), true},
		"the same":                            {at(100, 0), at(100, 0), false},
		"later by less than a tenth":          {at(91, 0), at(100, 0), false},
		"later by a tenth":                    {at(90, 0), at(100, 0), false},
		"later by more":                       {at(89, 0), at(100, 0), true},
		"sooner by more":                      {at(111, 0), at(100, 0), true},
		"by seconds, at the end of the job":   {at(0, 20), at(0, 11), false},
		"by many seconds, at the end":         {at(0, 31), at(0, 20), true},
		"done long before it was expected to": {at(60, 0), now, true},
		"over, by a clock that was set back":  {at(-60, 0), at(-10, 0), true},
	} {
		if got := Moved(test.written, test.end, now); got != test.want {
			t.Errorf("%s: written = %t, want %t", what, got, test.want)
		}
	}
}
