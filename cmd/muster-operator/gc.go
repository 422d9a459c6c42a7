package main

import (
	"context"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	// maxGarbageBytes is the limit in bytes on garbage, if the live heap is larger. By default (GOGC=100) Go allows as
	// much garbage as there is live memory, which is wasteful for the large and mostly static caches of a large cluster.
	maxGarbageBytes = 64 << 20
	// minGarbagePercent is the smallest GC percentage: below it, collecting costs more CPU than the memory is worth.
	minGarbagePercent = 25
	// gcCheckInterval is the interval at which the size of the live heap is read.
	gcCheckInterval = 200 * time.Millisecond
)

// boundMemory makes the garbage collector work harder before the container reaches its limit on memory, at which the
// kernel kills it. It returns Go's new limit; 0 if it changes nothing, because GOMEMLIMIT is set or the container has
// no limit.
func boundMemory(container int64) int64 {
	if container == 0 || os.Getenv("GOMEMLIMIT") != "" {
		return 0
	}
	// what Go does not count: the program itself, stacks of C, files that the kernel maps
	limit := container - container/10
	debug.SetMemoryLimit(limit)
	return limit
}

// boundGarbage adjusts the GC percentage until the context ends, so that there is not more garbage than
// maxGarbageBytes. It does nothing if GOGC is set.
func boundGarbage(ctx context.Context) {
	if os.Getenv("GOGC") != "" {
		return
	}
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	now := 100 // Go's default
	tick := time.NewTicker(gcCheckInterval)
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
	if live <= maxGarbageBytes {
		return 100
	}
	return max(minGarbagePercent, int(100*maxGarbageBytes/live))
}
