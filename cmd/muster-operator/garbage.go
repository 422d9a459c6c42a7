package main

import (
	"context"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	// garbageMost is how many bytes of garbage there may be beside what lives, where that is more: Go's own rule lets there be as
	// much of it as lives. Much lives where a cluster is large, and little of that changes.
	garbageMost = 64 << 20
	// garbageLeast is the least percentage of what lives: below it collecting costs more than it gives.
	garbageLeast = 25
	// garbageLook is how often it is looked how much lives.
	garbageLook = 200 * time.Millisecond
)

// boundGarbage keeps garbage within bounds until the context ends, unless GOGC says what is to be done about it.
func boundGarbage(ctx context.Context) {
	if os.Getenv("GOGC") != "" {
		return
	}
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	now := 100 // Go's own
	tick := time.NewTicker(garbageLook)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		metrics.Read(live)
		// Each change stops everybody for a moment.
		if percent := garbagePercent(live[0].Value.Uint64()); percent < now-now/10 || percent > now+now/10 {
			debug.SetGCPercent(percent)
			now = percent
		}
	}
}

// garbagePercent is how much garbage there may be, in percent of the bytes that live.
func garbagePercent(live uint64) int {
	if live <= garbageMost {
		return 100
	}
	return max(garbageLeast, int(100*garbageMost/live))
}
