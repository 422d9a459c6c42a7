package show

import (
	"fmt"
	"strings"
	"time"

	"github.com/musterhq/muster/cmd/muster/view"
	"github.com/musterhq/muster/internal/workload"
)

// times says in a few words how much time a job that runs has left, how much of it is done, and when it expects to end:
// "left 1h20m, ~40% done, ends ~14:20 UTC". It is "" for a job of which none of that is known.
func times(job *view.Job, now time.Time) string {
	var parts []string
	if job.LeftSeconds != nil {
		parts = append(parts, left(*job.LeftSeconds))
	}
	if job.ProgressPercentage != nil {
		parts = append(parts, fmt.Sprintf("~%d%% done", *job.ProgressPercentage))
	}
	if job.ExpectedEnd != nil {
		parts = append(parts, "ends ~"+clockTime(job.ExpectedEnd.Time, now))
	}
	return strings.Join(parts, ", ")
}

// left says how much time a job has left, in seconds below ten minutes and in minutes below a day.
func left(seconds int64) string {
	if seconds <= 0 {
		return "over its limit"
	}
	d, unit := time.Duration(seconds)*time.Second, time.Second
	switch {
	case d >= 24*time.Hour:
		unit = time.Hour
	case d >= 10*time.Minute:
		unit = time.Minute
	}
	return "left " + workload.FormatDuration(d.Truncate(unit))
}

// clockTime writes a point in time without what it shares with now: "14:20 UTC" for one of the next day or less, else
// with its date.
func clockTime(t, now time.Time) string {
	t = t.UTC()
	if t.Sub(now) < 24*time.Hour {
		return t.Format("15:04 UTC")
	}
	return t.Format("2006-01-02 15:04 UTC")
}

// timeLines writes the time limit of a job that runs, where it is set and how much time is left, and when the job
// expects to end.
func timeLines(text *strings.Builder, job *view.Job) {
	if limit := job.Limit; limit != nil && job.LeftSeconds != nil {
		then := "its pods are stopped and its Workload is deactivated then"
		switch {
		case limit.Pauses:
			then = "it is paused then"
		case limit.Own:
			then = "it is stopped about then"
		}
		reach := "until"
		if *job.LeftSeconds <= 0 {
			reach = "since"
		}
		line(text, "limit", fmt.Sprintf("%s, set by %s: %s, %s %s; %s",
			workload.FormatDuration(time.Duration(limit.Seconds)*time.Second), limit.Source, left(*job.LeftSeconds), reach,
			limit.EndsAt.UTC().Format(timeFormat), then))
	}
	if job.ProgressPercentage != nil {
		line(text, "done", fmt.Sprintf("about %d%%, as its pods report", *job.ProgressPercentage))
	}
	if job.ExpectedEnd != nil {
		line(text, "ends", "about "+job.ExpectedEnd.UTC().Format(timeFormat)+", as its pods report")
	}
}
