package view

import (
	"time"

	"k8s.io/apimachinery/pkg/util/duration"
)

// Duration formats a duration as kubectl does: 7m, 3h4m.
func Duration(d time.Duration) string { return duration.HumanDuration(max(0, d)) }

// Seconds formats a number of seconds; "-" for nil.
func Seconds(n *int64) string {
	if n == nil {
		return "-"
	}
	return Duration(time.Duration(*n) * time.Second)
}
