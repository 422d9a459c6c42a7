// Package schedule computes the times at which a job with a schedule runs. It is pure.
package schedule

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
)

// Schedule is a set of times in UTC, on whole minutes.
type Schedule struct{ times *cron.SpecSchedule }

// Parse parses five cron fields, or a name such as @daily.
func Parse(text string) (Schedule, error) {
	// Time zones are not part of the fields, and "@every" defines no fixed times: they would depend on
	// when they are computed.
	for _, word := range []string{"TZ", "@every"} {
		if strings.Contains(text, word) {
			return Schedule{}, fmt.Errorf(
				"schedule '%s': %s is not supported: times are in UTC, and of five fields or such as @daily", text, word)
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

// Next returns the first time after now.
func (s Schedule) Next(now time.Time) time.Time { return s.times.Next(now.UTC()) }

// searchPeriods are the periods before now that Last searches in turn, so that it iterates over few times.
// The longest has every day of the year, also February 29, which some centuries skip.
var searchPeriods = []time.Duration{time.Hour, 24 * time.Hour, 31 * 24 * time.Hour, 366 * 24 * time.Hour,
	8 * 366 * 24 * time.Hour}

// Last returns the latest time after after and not after now; zero if there is none.
func (s Schedule) Last(after, now time.Time) (last time.Time) {
	after, now = after.UTC(), now.UTC()
	for _, back := range searchPeriods {
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
