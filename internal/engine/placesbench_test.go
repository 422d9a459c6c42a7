package engine

import (
	"fmt"
	"testing"

	"github.com/musterhq/muster/internal/engine/evaluate"
	"github.com/musterhq/muster/internal/engine/place"
)

// nodePool returns an engine with this number of nodes of 8 cpu, in racks of 16 and blocks of 16 racks, and a queue
// with quota for all of them.
func nodePool(nodes int) *Engine {
	e := New(Options{})
	e.Apply(TopologySet{place.Topology{Name: "racks", Levels: []string{"block", rack, place.Hostname}}})
	e.Apply(FlavorSet{Flavor{Name: "default", Topology: "racks"}})
	q := queueOf("q", "", int64(nodes)*8)
	q.Strategy = BestEffort
	e.Apply(q)
	e.Apply(localOf("q"))
	for i := range nodes {
		name := fmt.Sprintf("n%05d", i)
		e.Apply(NodeSet{place.Node{Name: name,
			Labels:      map[string]string{"block": fmt.Sprint(i / 256), rack: fmt.Sprint(i / 16), place.Hostname: name},
			Allocatable: map[string]int64{"cpu": 8, place.Pods: 110}}})
	}
	e.Decide(epoch)
	return e
}

// BenchmarkPlacesDrain admits single pods on many nodes, with one event and one pass each, and then binds the pods.
func BenchmarkPlacesDrain(b *testing.B) {
	const size = 10_000
	for b.Loop() {
		b.StopTimer()
		e := nodePool(15_000)
		jobs := make([]WorkloadSet, size)
		for i := range jobs {
			jobs[i] = job(fmt.Sprintf("w%d", i), "q", 1, 1, 0, i)
		}
		b.StartTimer()
		admitted := 0
		for _, j := range jobs {
			e.Apply(j)
			for _, d := range decideAll(e, epoch) {
				if d.Admit != nil {
					admitted++
				}
			}
		}
		if admitted != size {
			b.Fatalf("%d of %d jobs were admitted", admitted, size)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/size, "ns/workload")
}

// BenchmarkPlacesBacklog is BenchmarkPlacesDrain with all jobs waiting at once; their pods are bound after that.
func BenchmarkPlacesBacklog(b *testing.B) {
	const size = 10_000
	for b.Loop() {
		b.StopTimer()
		e := nodePool(15_000)
		for i := range size {
			e.Apply(job(fmt.Sprintf("w%d", i), "q", 1, 1, 0, i))
		}
		b.StartTimer()
		decisions := decideAll(e, epoch)
		for i, d := range decisions {
			e.Apply(Written{Key: d.Key, UID: d.UID, Version: 1})
			e.Apply(pod(d.Key.Name, i, d.Admit.PodSets[0].Places[0].Node, 1))
			decideAll(e, epoch)
		}
		if len(decisions) != size {
			b.Fatalf("%d decisions, want %d", len(decisions), size)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/size, "ns/workload")
}

// BenchmarkYield evaluates what can be done for a workload on full nodes with thousands of elastic ones, of which none,
// some or many have to shrink or stop.
func BenchmarkYield(b *testing.B) {
	e := nodePool(3000)
	for i := range 4600 {
		e.Apply(between(fmt.Sprintf("j%05d", i), 1+int32(i%4), 4+2*int32(i%5), int32(i%3), i))
	}
	for e.Busy() {
		for _, d := range e.Decide(epoch) {
			e.Apply(Written{Key: d.Key, UID: d.UID, Version: 1})
		}
	}
	rackful := job("rackful", "q", 16, 1, 1, 5000)
	rackful.PodSets[0].Topology = within(rackful).PodSets[0].Topology
	for name, w := range map[string]WorkloadSet{"a node": job("node", "q", 1, 8, 1, 5000), "16 pods in a rack": rackful,
		"64 nodes, of the highest priority": job("nodes", "q", 64, 8, 2, 5000),
		"more than have quota":              job("too-large", "q", 2900, 8, 1, 5000)} {
		b.Run(name, func(b *testing.B) {
			e.Apply(w)
			found := evaluate.Outcome{}
			b.ReportAllocs()
			for b.Loop() {
				found = e.evaluator.Evaluate(e.workloads[w.Key].Class)
			}
			b.ReportMetric(float64(len(found.Yields)+len(found.Victims)), "yields")
			e.Apply(gone(w.Key.Name))
		})
	}
}

// BenchmarkPlacesGang admits a gang of 1,000 pods, required in one block and preferred in one rack, or finds that it
// has no places.
func BenchmarkPlacesGang(b *testing.B) {
	for _, full := range []bool{false, true} {
		b.Run(fmt.Sprintf("full=%v", full), func(b *testing.B) {
			e := nodePool(15_000)
			if full {
				for i := range 15_000 {
					e.Apply(pod("", i, fmt.Sprintf("n%05d", i), 5))
				}
			}
			gang := job("gang", "q", 1000, 1, 0, 0)
			gang.PodSets[0].Topology = within(gang).PodSets[0].Topology
			gang.PodSets[0].Topology.Level = "block"
			e.Apply(gang)
			decideAll(e, epoch)
			for b.Loop() {
				e.Apply(gone("gang"))
				e.Apply(gang)
				if got := decideAll(e, epoch); (e.Holds(gang.Key) != nil) == full {
					b.Fatalf("got decisions %+v", got)
				}
			}
		})
	}
}
