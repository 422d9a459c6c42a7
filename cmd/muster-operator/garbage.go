package main

import (
	"context"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	// garbageMost is the limit in bytes on garbage, if the live heap is larger. By default (GOGC=100) Go allows as much
	// garbage as there is live memory, which is wasteful for the large and mostly static caches of a large cluster.
	garbageMost = 64 << 20
	// garbageLeast is the smallest GC percentage: below it, collecting costs more CPU than the memory is worth.
	garbageLeast = 25
	// garbageLook is the interval at which the size of the live heap is read.
	garbageLook = 200 * time.Millisecond
)

// boundGarbage adjusts the GC percentage until the context ends, so that there is not more garbage than garbageMost. It
// does nothing if GOGC is set.
func boundGarbage(ctx context.Context) {
	if os.Getenv("GOGC") != "" {
		return
	}
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	now := 100 // Go's default
	tick := time.NewTicker(garbageLook)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		metrics.Read(live)
		// SetGCPercent stops the world, so small changes are skipped.
		if percent := garbagePercent(live[0].Value.Uint64()); percent < now-now/10 || percent > now+now/10 {
			debug.SetGCPercent(percent)
			now = percent
		}
	}
}

// garbagePercent returns the GC percentage for a live heap of that many bytes.
func garbagePercent(live uint64) int {
	if live <= garbageMost {
		return 100
	}
	return max(garbageLeast, int(100*garbageMost/live))
}
