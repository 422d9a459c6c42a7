package schedule

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func at(t *testing.T, text string) time.Time {
	t.Helper()
	when, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return when
}

func TestWhatIsNoSchedule(t *testing.T) {
	for text, want := range map[string]string{
		"":                          "empty spec string",
		"* * * *":                   "expected exactly 5 fields",
		"0 0 6 * * *":               "expected exactly 5 fields",
		"60 * * * *":                "above maximum",
		"0 0 31 2 *":                "there is no such day",
		"@every 10s":                "@every is not supported",
		"TZ=0":                      "TZ is not supported", // it would have the library panic
		"CRON_TZ=Asia/Tokyo @daily": "TZ is not supported",
	} {
		if _, err := Parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is refused with %v, want %q", text, err, want)
		}
	}
}

func TestTheLastTimeThatIsDue(t *testing.T) {
	for name, tc := range map[string]struct{ schedule, after, now, last, next string }{
		"none before the first": {"0 6 * * *", "2026-03-01T05:00:00Z", "2026-03-01T05:59:59Z", "",
			"2026-03-01T06:00:00Z"},
		"to the second": {"0 6 * * *", "2026-03-01T05:00:00Z", "2026-03-01T06:00:00Z",
			"2026-03-01T06:00:00Z", "2026-03-02T06:00:00Z"},
		"not one that has been": {"0 6 * * *", "2026-03-01T06:00:00Z", "2026-03-01T07:00:00Z", "",
			"2026-03-02T06:00:00Z"},
		"the last of many that were missed": {"*/5 * * * *", "2020-01-01T00:00:00Z", "2026-03-01T06:04:59Z",
			"2026-03-01T06:00:00Z", "2026-03-01T06:05:00Z"},
		"one of the day before": {"30 22 * * *", "2026-01-01T00:00:00Z", "2026-03-01T06:00:00Z",
			"2026-02-28T22:30:00Z", "2026-03-01T22:30:00Z"},
		"one that comes every four years": {"0 0 29 2 *", "2020-03-01T00:00:00Z", "2026-03-01T00:00:00Z",
			"2024-02-29T00:00:00Z", "2028-02-29T00:00:00Z"},
		"by name, in UTC wherever it is": {"@daily", "2026-03-01T00:00:00+09:00", "2026-03-01T12:00:00+09:00",
			"2026-03-01T00:00:00Z", "2026-03-02T00:00:00Z"},
		"a clock that goes back": {"* * * * *", "2026-03-01T06:00:00Z", "2026-03-01T05:00:00Z", "", "2026-03-01T05:01:00Z"},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := Parse(tc.schedule)
			if err != nil {
				t.Fatal(err)
			}
			var last time.Time
			if tc.last != "" {
				last = at(t, tc.last)
			}
			if got := s.Last(at(t, tc.after), at(t, tc.now)); !got.Equal(last) {
				t.Errorf("the last is %s, want %q", got, tc.last)
			}
			if got := s.Next(at(t, tc.now)); !got.Equal(at(t, tc.next)) {
				t.Errorf("the next is %s, want %s", got, tc.next)
			}
		})
	}
}

// TestTheLastIsTheLast: it is a time of the schedule within the bounds, and none follows within them.
func TestTheLastIsTheLast(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.SampledFrom([]string{"* * * * *", "*/7 * * * *", "13 */5 * * *", "0 9 * * 1-5", "@weekly", "@monthly",
			"0 0 29 2 *", "@yearly"}).Draw(t, "schedule")
		s, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		now := time.Unix(rapid.Int64Range(1e9, 2e9).Draw(t, "now"), 0)
		after := now.Add(-time.Duration(rapid.Int64Range(0, 9*366*24*3600).Draw(t, "seconds")) * time.Second)
		last := s.Last(after, now)
		switch {
		case last.IsZero():
			if next := s.Next(after); !next.After(now) {
				t.Fatalf("none, and there is %s", next)
			}
		case !last.After(after), last.After(now):
			t.Fatalf("%s is not after %s and not after %s", last, after, now)
		case !s.Next(last.Add(-time.Second)).Equal(last):
			t.Fatalf("%s is not a time of %s", last, text)
		case !s.Next(last).After(now):
			t.Fatalf("%s follows on %s", s.Next(last), last)
		}
	})
}
