package engine

import (
	"flag"
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/musterhq/muster/internal/engine/flavor"
	"github.com/musterhq/muster/internal/engine/reason"
)

// worlds is 2 % of those that `make long` plays.
var worlds = flag.Int("worlds", 2000, "how many random worlds TestEngineComesToRest plays")

// newGangWorld returns a world like that of the queue default: jobs of several pod sets on nodes, some of which are
// added on demand, in queues that keep resources for their heads, evict, and have checks.
func newGangWorld(t *rapid.T) *world {
	w := newNodeWorld(t)
	w.nodes.gangs = true
	for _, name := range queueNames {
		q := w.queues[name]
		q.Strategy = rapid.SampledFrom([]Strategy{BestEffort, BestEffort, Strict}).Draw(t,
			"strategy of "+name+" like default")
		q.OnDemand = rapid.Bool().Draw(t, name+" has nodes on demand like default")
		if rapid.IntRange(0, 2).Draw(t, name+" has a check if 0") == 0 {
			q.Checks = []Check{{Name: "check"}}
		}
		w.queues[name] = q
		w.apply(q)
	}
	return w
}

// newPlannedWorld has all queues of the world plan starts.
func newPlannedWorld(t *rapid.T, w *world) *world {
	w.learns = true
	for _, name := range queueNames {
		q := w.queues[name]
		q.Strategy, q.Backfill = BestEffort, true
		w.queues[name] = q
		w.apply(q)
	}
	return w
}

// addPodSets adds up to two pod sets to a job on nodes, which may be one group with its first.
func (w *world) addPodSets(t *rapid.T, ev *WorkloadSet) {
	first := &ev.PodSets[0]
	for i := range rapid.IntRange(0, 2).Draw(t, "further pod sets") {
		ps := PodSet{Name: fmt.Sprintf("set-%d", i), Count: rapid.Int32Range(0, 3).Draw(t, "pods of the set"),
			PerPod: map[string]int64{"cpu": rapid.SampledFrom([]int64{0, 1, 2, 4, 9}).Draw(t, "cpu of the set")}}
		if first.Topology != nil && len(first.Topology.Slices) == 0 && first.ExclusiveKey == "" &&
			rapid.Bool().Draw(t, "in one group") {
			first.Topology.Group = "g"
			ps.Topology = &flavor.TopologyRequest{Level: first.Topology.Level, Mandatory: first.Topology.Mandatory, Group: "g"}
		}
		ev.PodSets = append(ev.PodSets, ps)
	}
	drawTogether(t, ev.PodSets)
	first = &ev.PodSets[0]
	if (len(ev.PodSets) == 1 || first.Together > 0) && w.elastic && first.Topology == nil && first.Count > 1 &&
		rapid.Bool().Draw(t, "elastic") {
		first.MinCount, first.Elastic, first.Reclaimable = 1, 0.85, 0
	}
}

// drawTogether has a job of several pod sets need a number of pods, of whichever pod sets or of all but the last one.
func drawTogether(t *rapid.T, podSets []PodSet) {
	var all int32
	for _, ps := range podSets {
		all += ps.Count
	}
	if len(podSets) == 1 || all == 0 || rapid.Bool().Draw(t, "each pod set must run") {
		return
	}
	together := rapid.Int32Range(1, all).Draw(t, "pods that run together")
	if rapid.IntRange(0, 3).Draw(t, "the last pod set must run if 0") == 0 {
		podSets = podSets[:len(podSets)-1]
	}
	for i := range podSets {
		podSets[i].MinCount, podSets[i].Together = min(1, podSets[i].Count), together
	}
}

// TestEngineComesToRest: after any events, and without further ones, the engine comes to rest within a bounded number
// of evaluations, no job waits that fits, every waiting job has a reason then, and once all writes are answered nothing
// more is decided.
func TestEngineComesToRest(t *testing.T) {
	kinds := map[string]func(*rapid.T) *world{
		"quota":            newWorld,
		"flavors":          newWideWorld,
		"nodes":            newNodeWorld,
		"gangs":            newGangWorld,
		"losses":           newLossWorld,
		"elastic":          func(t *rapid.T) *world { w := newGangWorld(t); w.resizes(t, 5, 3); return w },
		"planned":          func(t *rapid.T) *world { return newPlannedWorld(t, newWorld(t)) },
		"planned on nodes": func(t *rapid.T) *world { return newPlannedWorld(t, newNodeWorld(t)) },
		"growing":          func(t *rapid.T) *world { w := newGrowthWorld(t); w.resizes(t, 30, 60); return w },
	}
	playWorlds(t, *worlds/len(kinds)+1)
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		t.Run(kind, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				w := kinds[kind](t)
				if rapid.IntRange(0, 3).Draw(t, "objects come and go if 0") == 0 {
					w.startChurn()
				}
				for range rapid.IntRange(1, 5).Draw(t, "bursts of events") {
					for range rapid.IntRange(1, 15).Draw(t, "events") {
						w.step(t)
					}
					w.rest(t)
				}
				w.settle(t)
				if n := len(w.engine.nodes.Replacing); n > 0 {
					w.describe(t)
					t.Fatalf("%d workloads wait for a replacement, and nothing is leaving", n)
				}
			})
		})
	}
}

// playWorlds makes rapid draw that many worlds until the end of the test.
func playWorlds(t *testing.T, many int) {
	t.Helper()
	checks := flag.Lookup("rapid.checks")
	before := checks.Value.String()
	if err := checks.Value.Set(fmt.Sprint(many)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = checks.Value.Set(before) })
}

// rest runs passes until the engine is at rest, all at one time. That takes a bounded number of evaluations: a class is
// evaluated when it is ready, and becomes ready again only with a decision about another workload, which released or
// took something. Until its write is answered, none of n workloads is decided on again, and a nomination is broken only
// for a workload that comes before. So there are n+1 rounds at most, and in each the n classes at most, and the heads
// of the queues, are evaluated twice at most: as they become ready, and as the head that is served.
func (w *world) rest(t *rapid.T) {
	n := len(w.engine.workloads)
	before := w.engine.evaluator.Evaluations
	w.decide()
	if spent, bound := w.engine.evaluator.Evaluations-before, 2*(n+1)*(n+len(queueNames)); spent > bound {
		w.describe(t)
		t.Fatalf("%d evaluations for %d workloads, want %d at most", spent, n, bound)
	}
	for _, name := range w.names() {
		if job := w.engine.workloads[w.jobs[name].Key]; job.Held == nil && job.Why.Code == reason.None {
			w.describe(t)
			t.Fatalf("%s waits without a reason", job.Key)
		}
	}
}
