package jobstest

import (
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// CheckAboutLinear fails if the time that work takes grows much faster than its size: for four times the size at most
// eight times the time, where a quadratic cost is sixteen times as much. Both are measured by turns, in CPU time, and
// of each the shortest time counts, so that other load of the machine does not matter. prepare returns the work of this
// size, to be done once, by the goroutine that calls it.
func CheckAboutLinear(t *testing.T, size int, prepare func(size int) (work func())) {
	t.Helper()
	const turns, most = 10, 8
	var small, large time.Duration
	for turn := range turns {
		small = shortest(t, turn, small, prepare(size))
		large = shortest(t, turn, large, prepare(4*size))
		if large <= most*small {
			return
		}
	}
	t.Errorf("%d take %s and %d take %s, want at most %d times as long", size, small, 4*size, large, most)
}

// shortest returns the shortest time of work, given that of the turns before.
func shortest(t *testing.T, turn int, before time.Duration, work func()) time.Duration {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	begin := threadTime(t)
	work()
	if took := threadTime(t) - begin; turn == 0 || took < before {
		return took
	}
	return before
}

// threadTime returns the CPU time of the calling thread, to the nanosecond: that of getrusage can be milliseconds old.
func threadTime(t *testing.T) time.Duration {
	var used unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &used); err != nil {
		t.Fatal(err)
	}
	return time.Duration(used.Nano())
}
