//go:build bench

package bench

import (
	"fmt"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/engine/durations"
	"github.com/musterhq/muster/test/bench/figure"
)

const (
	contendedQuota = 16
	contendedSizes = 8
)

// TestContended measures the engine's time for each admission while 50,000 workloads wait in 1,000 ClusterQueues that
// have quota for a few of them: in each step the oldest one of each queue ends, ten minutes after the step before. The
// ratio says what it costs to plan the start of the first one of each queue that does not fit: those behind it differ
// in their limits, and so are tried one by one.
func TestContended(t *testing.T) {
	plain, planned := contended(t, false), contended(t, true)
	figure.Note(fmt.Sprintf("engine time an admission, %d in %d queues that are full", drainWorkloads, drainQueues),
		plain.each.String())
	figure.Note("  with planned starts", planned.each.String())
	figure.Note("  that is, times", fmt.Sprintf("%.1f", float64(planned.each)/float64(plain.each)))
	figure.Note("  the longest pass once all wait", plain.longest.String())
	figure.Note("  with planned starts", planned.longest.String())
}

// contendedRun is the time of the engine for each admission, and that of its longest pass.
type contendedRun struct{ each, longest time.Duration }

// contended plays until all workloads were admitted. What it takes to evaluate all of them once is not counted.
func contended(t *testing.T, plans bool) contendedRun {
	t.Helper()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	e := engine.New(engine.Options{})
	for _, event := range contendedEvents(now, plans) {
		e.Apply(event)
	}
	var out contendedRun
	var spent time.Duration
	var running []engine.Key
	admitted := 0
	for step := 0; admitted < drainWorkloads; step++ {
		before := admitted
		for first := true; first || e.Busy(); first = false {
			began := time.Now()
			decisions := e.Decide(now)
			pass := time.Since(began)
			for _, d := range decisions {
				if d.Admit != nil {
					admitted++
					running = append(running, d.Key)
					e.Apply(engine.Written{Key: d.Key, UID: d.UID, Version: 1})
				}
			}
			if spent += time.Since(began); step > 0 {
				out.longest = max(out.longest, pass)
			}
		}
		if step == 0 {
			spent = 0
		}
		if len(running) == 0 && admitted == before {
			t.Fatalf("nothing runs, and %d of %d were admitted", admitted, drainWorkloads)
		}
		now = now.Add(10 * time.Minute)
		began := time.Now()
		for _, key := range running[:min(drainQueues, len(running))] {
			e.Apply(engine.WorkloadGone{Key: key})
		}
		spent += time.Since(began)
		running = running[min(drainQueues, len(running)):]
	}
	out.each = spent / drainWorkloads
	return out
}

func contendedEvents(now time.Time, plans bool) []engine.Event {
	events := benchQueueEvents(plans, contendedQuota)
	for i := range drainWorkloads {
		name := fmt.Sprint("workload-", i)
		events = append(events, engine.WorkloadSet{Workload: engine.Workload{
			Key: engine.Key{Namespace: "bench", Name: name}, UID: name, Generation: 1, Version: 1,
			Queue: fmt.Sprint("queue-", i%drainQueues), QueuedAt: now.Add(time.Duration(i-drainWorkloads) * time.Second),
			Time: durations.Known{Limit: time.Duration(1+i%24) * time.Hour, Kind: fmt.Sprint("user ", i%100)},
			PodSets: []engine.PodSet{{Name: "main", Count: int32(1 + i/drainQueues*7%contendedSizes),
				PerPod: map[string]int64{"cpu": 1000}}}}})
	}
	return events
}
