package main

import "testing"

func TestGarbagePercent(t *testing.T) {
	for live, want := range map[uint64]int{0: 100, 10 << 20: 100, maxGarbageBytes: 100, 2 * maxGarbageBytes: 50, 1 << 40: minGarbagePercent} {
		if got := garbagePercent(live); got != want {
			t.Errorf("garbagePercent(%d) = %d %%, want %d %%", live, got, want)
		}
	}
}
