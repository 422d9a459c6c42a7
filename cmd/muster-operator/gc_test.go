package main

import (
	"math"
	"runtime/debug"
	"testing"
)

func TestGarbagePercent(t *testing.T) {
	for live, want := range map[uint64]int{0: 100, 10 << 20: 100, maxGarbageBytes: 100, 2 * maxGarbageBytes: 50,
		1 << 40: minGarbagePercent} {
		if got := garbagePercent(live); got != want {
			t.Errorf("garbagePercent(%d) = %d %%, want %d %%", live, got, want)
		}
	}
}

// TestMemoryLimit: Go's limit follows that of the container, unless GOMEMLIMIT says otherwise.
func TestMemoryLimit(t *testing.T) {
	before := debug.SetMemoryLimit(-1)
	defer debug.SetMemoryLimit(before)
	for what, tc := range map[string]struct {
		container   int64
		environment string
		want        int64
	}{
		"512 MiB, the chart's default": {512 << 20, "", 512<<20 - 512<<20/10},
		"no limit":                     {0, "", math.MaxInt64},
		"GOMEMLIMIT is set":            {512 << 20, "1GiB", math.MaxInt64},
	} {
		t.Run(what, func(t *testing.T) {
			t.Setenv("GOMEMLIMIT", tc.environment)
			debug.SetMemoryLimit(math.MaxInt64)
			boundMemory(tc.container)
			if got := debug.SetMemoryLimit(-1); got != tc.want {
				t.Errorf("Go's limit is %d, want %d", got, tc.want)
			}
		})
	}
}
