package workload

import (
	"regexp"
	"strconv"
	"time"
)

// durationText matches durations as in annotations of queues: 1d12h, or 0 for none.
var durationText = regexp.MustCompile(`^(?:(\d+)y)?(?:(\d+)w)?(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?(?:(\d+)ms)?$`)

var durationUnits = []time.Duration{365 * 24 * time.Hour, 7 * 24 * time.Hour, 24 * time.Hour, time.Hour, time.Minute,
	time.Second, time.Millisecond}

// ParseDuration returns the duration that an annotation of a queue says, such as 1d12h with units from y, w, d, h, m, s
// and ms in that order; 0 and the empty text mean none. ok is false if the text is no duration, or one that overflows
// time.Duration: neither says anything.
func ParseDuration(text string) (d time.Duration, ok bool) {
	if text == "" || text == "0" {
		return 0, true
	}
	parts := durationText.FindStringSubmatch(text)
	if parts == nil {
		return 0, false
	}
	var sum time.Duration
	for i, unit := range durationUnits {
		if parts[i+1] == "" {
			continue
		}
		n, err := strconv.ParseInt(parts[i+1], 10, 64)
		if err != nil || time.Duration(n) > (1<<63-1-sum)/unit {
			return 0, false
		}
		sum += time.Duration(n) * unit
	}
	return sum, true
}
