package main

import "testing"

func TestGarbageIsAsMuchAsLivesUpToABound(t *testing.T) {
	for live, want := range map[uint64]int{0: 100, 10 << 20: 100, garbageMost: 100, 2 * garbageMost: 50, 1 << 40: garbageLeast} {
		if got := garbagePercent(live); got != want {
			t.Errorf("of %d bytes: %d %%, want %d %%", live, got, want)
		}
	}
}
