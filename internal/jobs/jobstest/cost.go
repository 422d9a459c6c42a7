package jobstest

import (
	"testing"
	"time"
)

// CheckAboutLinear fails if the time that work takes grows much faster than its size: eight times as much of it at most
// for four times the size, where a quadratic cost is sixteen times as much. Both are measured by turns, and of each the
// shortest time counts, so that other load of the machine matters only if it never pauses. prepare returns the work of
// this size, to be done once.
func CheckAboutLinear(t *testing.T, size int, prepare func(size int) (work func())) {
	t.Helper()
	const turns, most = 5, 8
	var small, large time.Duration
	for turn := range turns {
		small = shortest(turn, small, prepare(size))
		large = shortest(turn, large, prepare(4*size))
		if large <= most*small {
			return
		}
	}
	t.Errorf("%d take %s and %d take %s, want at most %d times as long", size, small, 4*size, large, most)
}

// shortest returns the shortest time of work, given that of the turns before.
func shortest(turn int, before time.Duration, work func()) time.Duration {
	begin := time.Now()
	work()
	if took := time.Since(begin); turn == 0 || took < before {
		return took
	}
	return before
}
