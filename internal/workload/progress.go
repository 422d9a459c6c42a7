package workload

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// progressBetween is what separates the percentage and the time of a reported progress.
const progressBetween = "% at "

// FormatProgress writes how much of a job was done at a time, as in "40% at 2026-11-30T14:00:00Z".
func FormatProgress(percentage int64, at time.Time) string {
	return fmt.Sprintf("%d%s%s", percentage, progressBetween, at.UTC().Format(time.RFC3339))
}

// ParseProgress reads what FormatProgress writes. ok is false for any other text.
func ParseProgress(text string) (percentage int64, at time.Time, ok bool) {
	number, when, _ := strings.Cut(text, progressBetween)
	percentage, err := strconv.ParseInt(number, 10, 64)
	if err != nil || percentage < 0 || percentage > 100 {
		return 0, time.Time{}, false
	}
	if at, err = time.Parse(time.RFC3339, when); err != nil || FormatProgress(percentage, at) != text {
		return 0, time.Time{}, false
	}
	return percentage, at, true
}
