// Package schedule says at which times a job with a schedule runs, and which of its runs are over. It is pure.
package schedule

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
)

// Schedule is times in UTC, of whole minutes.
type Schedule struct{ times *cron.SpecSchedule }

// Parse reads five fields, or a name such as @daily.
func Parse(text string) (Schedule, error) {
	// A time zone is not of the fields, and "@every" has no times of its own: they would depend on when somebody asks.
	for _, word := range []string{"TZ", "@every"} {
		if strings.Contains(text, word) {
			return Schedule{}, fmt.Errorf("schedule '%s': %s is not supported: times are in UTC, and of five fields or such as @daily", text, word)
		}
	}
	parsed, err := cron.ParseStandard(text)
	if err != nil {
		return Schedule{}, fmt.Errorf("schedule '%s': %w", text, err)
	}
	times, ok := parsed.(*cron.SpecSchedule)
	if !ok {
		return Schedule{}, fmt.Errorf("schedule '%s' has no times of its own", text)
	}
	times.Location = time.UTC
	if times.Next(time.Unix(0, 0)).IsZero() {
		return Schedule{}, fmt.Errorf("schedule '%s': %w", text, errNever)
	}
	return Schedule{times}, nil
}

var errNever = errors.New("there is no such day")

// Next is the first time after now.
func (s Schedule) Next(now time.Time) time.Time { return s.times.Next(now.UTC()) }

// looksBack are for how long before now times are looked for, so that few are passed on the way to the last of many. The
// longest has every day that there is, the 29th of February too, which some centuries leave out.
var looksBack = []time.Duration{time.Hour, 24 * time.Hour, 31 * 24 * time.Hour, 366 * 24 * time.Hour, 8 * 366 * 24 * time.Hour}

// Last is the last time that is after the one and not after the other, zero if there is none.
func (s Schedule) Last(after, now time.Time) (last time.Time) {
	after, now = after.UTC(), now.UTC()
	for _, back := range looksBack {
		from := now.Add(-back)
		if from.Before(after) {
			from = after
		}
		for t := s.times.Next(from); !t.IsZero() && !t.After(now); t = s.times.Next(t) {
			last = t
		}
		if !last.IsZero() || from.Equal(after) {
			return last
		}
	}
	return last
}
