package jobstest

import (
	"runtime"
	"syscall"
	"testing"
	"time"
)

// CheckAboutLinear fails if the time that work takes grows much faster than its size: eight times as much of it at most
// for four times the size, where a quadratic cost is sixteen times as much. Both are measured by turns, in CPU time, and
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

// threadTime returns the CPU time of the calling thread.
func threadTime(t *testing.T) time.Duration {
	const thread = 1 // RUSAGE_THREAD of Linux
	var used syscall.Rusage
	if err := syscall.Getrusage(thread, &used); err != nil {
		t.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
