package engine

import (
	"fmt"
	"testing"

	"github.com/musterhq/muster/internal/engine/flavor"
	"github.com/musterhq/muster/internal/engine/preempt"
)

// BenchmarkExplainFullNodes explains jobs that wait for nodes which tens of thousands of other workloads fill: what has
// to end is found by trial.
func BenchmarkExplainFullNodes(b *testing.B) {
	const nodes, size = 15_000, 50_000
	for name, quota := range map[string]int64{"short quota": nodes * 8, "free quota": nodes * 16} {
		e := nodePool(nodes)
		q := queueOf("q", "", quota)
		q.Preemption = preempt.Policy{WithinQueue: preempt.LowerPriority}
		e.Apply(q)
		for i := range size {
			e.Apply(job(fmt.Sprintf("w%d", i), "q", 1, 4, 0, i))
		}
		wide := job("rack", "q", 16, 8, 0, size)
		wide.PodSets[0].Topology = &flavor.TopologyRequest{Level: rack, Mandatory: true}
		anywhere := job("anywhere", "q", 8, 8, 0, size+1)
		block := job("block", "q", 256, 6, 0, size+2)
		block.PodSets[0].Topology = &flavor.TopologyRequest{Level: "block", Mandatory: true}
		never := job("never", "q", 17, 8, 0, size+3)
		never.PodSets[0].Topology = &flavor.TopologyRequest{Level: rack, Mandatory: true}
		for _, j := range []WorkloadSet{wide, anywhere, block, never} {
			e.Apply(j)
		}
		decideAll(e, epoch)
		for _, of := range []string{"rack", "anywhere", "block", "never"} {
			b.Run(name+"/"+of, func(b *testing.B) {
				ends := 0
				for b.Loop() {
					x, _ := e.Explain(Key{Namespace: "ns", Name: of})
					ends = len(x.WouldFitAfter)
				}
				b.ReportMetric(float64(ends), "ends")
			})
		}
	}
}
