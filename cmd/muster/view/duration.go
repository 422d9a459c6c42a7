package view

import (
	"time"

	"k8s.io/apimachinery/pkg/util/duration"
)

// Duration writes a time span as kubectl does: 7m, 3h4m.
func Duration(d time.Duration) string { return duration.HumanDuration(max(0, d)) }

// Seconds writes a count of seconds, "-" for none.
func Seconds(n *int64) string {
	if n == nil {
		return "-"
	}
	return Duration(time.Duration(*n) * time.Second)
}
