//go:build bench

package bench

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/engine/flavor"
	"github.com/musterhq/muster/internal/engine/quota"
	"github.com/musterhq/muster/test/bench/figure"
)

const (
	drainWorkloads = 50_000
	drainQueues    = 1_000
	drainRounds    = 3
	decisionMost   = 20 * time.Microsecond
	passMost       = 10 * time.Millisecond
)

// TestDrain: 50,000 workloads wait in 1,000 ClusterQueues that have room for all of
// them. Of a few rounds the best counts, and the others are told beside it: what else the
// machine does makes them longer, never shorter.
func TestDrain(t *testing.T) {
	var rounds []drained
	for range drainRounds {
		rounds = append(rounds, drain(t))
	}
	each := func(d drained) time.Duration { return (d.deciding + d.hearing) / drainWorkloads }
	slices.SortFunc(rounds, func(a, b drained) int { return cmp.Compare(each(a), each(b)) })
	best := rounds[0]
	figure.Reach(t, fmt.Sprintf("engine time a decision, %d in %d queues, best of %d", drainWorkloads, drainQueues, drainRounds),
		each(best).String(), decisionMost.String(), each(best) <= decisionMost)
	figure.Note("  the median and the worst of them", fmt.Sprintf("%s, %s", each(rounds[drainRounds/2]), each(rounds[drainRounds-1])))
	figure.Note("  of the best deciding", (best.deciding / drainWorkloads).String())
	figure.Note("  hearing of the workload, and of its admission", (best.hearing / drainWorkloads).String())
	slices.SortFunc(rounds, func(a, b drained) int { return cmp.Compare(a.longest, b.longest) })
	best = rounds[0]
	figure.Reach(t, fmt.Sprintf("longest of %d passes, best of %d rounds", best.passes, drainRounds),
		best.longest.Round(10*time.Microsecond).String(), passMost.String(), best.longest <= passMost)
	figure.Note("  in the median and the worst round", fmt.Sprintf("%s, %s",
		rounds[drainRounds/2].longest.Round(10*time.Microsecond), rounds[drainRounds-1].longest.Round(10*time.Microsecond)))
}

// drained is what a round took.
type drained struct {
	hearing, deciding, longest time.Duration
	passes                     int
}

// drain has an engine hear of everything, decide until nothing is left to decide,
// and hear of each admission that it was written.
func drain(t *testing.T) drained {
	t.Helper()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	e := engine.New(engine.Options{})
	for _, event := range drainQueueEvents() {
		e.Apply(event)
	}
	e.Decide(now) // there is nobody to admit, but queues to look at
	workloads := drainWorkloadEvents(now)
	var out drained
	began := time.Now()
	for _, event := range workloads {
		e.Apply(event)
	}
	out.hearing = time.Since(began)
	for admitted := 0; admitted < drainWorkloads; {
		began := time.Now()
		decisions := e.Decide(now)
		pass := time.Since(began)
		out.deciding += pass
		out.longest = max(out.longest, pass)
		out.passes++
		if len(decisions) == 0 {
			t.Fatalf("%d of %d workloads were admitted", admitted, drainWorkloads)
		}
		began = time.Now()
		for _, d := range decisions {
			if d.Admit == nil {
				t.Fatalf("%s waits: %s", d.Key.Name, d.Why.Message())
			}
			admitted++
			e.Apply(engine.Written{Key: d.Key, UID: d.UID, Version: 1})
		}
		out.hearing += time.Since(began)
	}
	return out
}

func drainQueueEvents() []engine.Event {
	events := []engine.Event{
		engine.NamespaceSet{Name: "bench"},
		engine.FlavorSet{Flavor: engine.Flavor{Name: "default"}},
	}
	for i := range drainQueues {
		name := fmt.Sprintf("queue-%d", i)
		events = append(events,
			engine.ClusterQueueSet{ClusterQueue: engine.ClusterQueue{
				Name:   name,
				Groups: []flavor.Group{{Resources: []string{"cpu"}, Flavors: []string{"default"}}},
				Quotas: quota.Quotas{{Flavor: "default", Resource: "cpu"}: {
					Nominal: drainWorkloads * 1000, Borrowing: quota.Unlimited, Lending: quota.Unlimited}},
				Namespaces: &metav1.LabelSelector{},
			}},
			engine.LocalQueueSet{LocalQueue: engine.LocalQueue{
				Key: engine.Key{Namespace: "bench", Name: name}, ClusterQueue: name}})
	}
	return events
}

func drainWorkloadEvents(now time.Time) []engine.Event {
	events := make([]engine.Event, 0, drainWorkloads)
	for i := range drainWorkloads {
		name := fmt.Sprintf("workload-%d", i)
		events = append(events, engine.WorkloadSet{Workload: engine.Workload{
			Key: engine.Key{Namespace: "bench", Name: name}, UID: name, Generation: 1, Version: 1,
			Queue:    fmt.Sprintf("queue-%d", i%drainQueues),
			Priority: int32(i % 3),
			QueuedAt: now.Add(-time.Duration(i) * time.Second),
			PodSets:  []engine.PodSet{{Name: "main", Count: 1, PerPod: map[string]int64{"cpu": 1000}}},
		}})
	}
	return events
}
