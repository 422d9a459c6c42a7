package engine

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/musterhq/muster/internal/engine/place"
	"github.com/musterhq/muster/internal/engine/preempt"
)

// contended is an engine whose quota is all in use, and in which many workloads of different shapes wait that may evict
// others: the usual state of a cluster that is shared.
type contended struct {
	*Engine
	random  *rand.Rand
	created int
	version int64
	// holders have quota, of the queue in queueOf.
	holders []Key
	queueOf map[Key]string
	// priorities is how many there are; places is set if there are nodes.
	priorities int32
	places     bool
}

// newContended returns one in which nothing was decided. Each queue has quota for so many nodes of 8 cpu, and the
// cohort half as much again; with places, these nodes exist.
func newContended(options Options, queues, nodesEach, pending int, priorities int32, places bool) *contended {
	c := &contended{Engine: New(options), random: rand.New(rand.NewPCG(1, 2)), queueOf: map[Key]string{},
		priorities: priorities, places: places}
	own := queues * nodesEach
	nodes := own + own/2
	c.Apply(FlavorSet{Flavor{Name: "default"}})
	if places {
		c.Apply(TopologySet{place.Topology{Name: "racks", Levels: []string{rack, place.Hostname}}})
		c.Apply(FlavorSet{Flavor{Name: "default", Topology: "racks"}})
		for i := range nodes {
			name := fmt.Sprintf("n%05d", i)
			c.Apply(NodeSet{place.Node{Name: name, Labels: map[string]string{rack: fmt.Sprint(i / 16), place.Hostname: name},
				Allocatable: map[string]int64{"cpu": 8, place.Pods: 110}}})
		}
	}
	c.Apply(cohortOf("lab", "", int64(nodes-own)*8))
	for i := range queues {
		name := fmt.Sprint("q", i)
		c.Apply(evicting(queueOf(name, "lab", int64(nodesEach)*8),
			preempt.Policy{WithinQueue: preempt.LowerPriority, Reclaim: preempt.Any}))
		c.Apply(localOf(name))
	}
	for i := range pending {
		c.create(fmt.Sprint("q", i%queues))
	}
	return c
}

// create creates a workload of 1 to 4 pods of 1 to 8 cpu, some in one rack.
func (c *contended) create(queue string) {
	w := job(fmt.Sprint("w", c.created), queue, []int32{1, 1, 1, 2, 4}[c.random.IntN(5)],
		[]int64{1, 2, 4, 8}[c.random.IntN(4)], c.random.Int32N(c.priorities), c.created)
	if c.places && c.random.IntN(2) == 0 {
		w.PodSets[0].Topology = within(w).PodSets[0].Topology
	}
	c.created++
	c.Apply(w)
}

// settle decides until nothing is left, and applies what was decided: those that are evicted are created again. It
// returns the number of evictions.
func (c *contended) settle() (evictions int) {
	for c.Busy() {
		for _, d := range c.Decide(epoch) {
			c.version++
			switch {
			case d.Admit != nil:
				c.holders = append(c.holders, d.Key)
				c.queueOf[d.Key] = d.Admit.ClusterQueue
				c.Apply(Written{Key: d.Key, UID: d.UID, Version: c.version})
			case d.Evict != nil:
				evictions++
				c.holders = slices.DeleteFunc(c.holders, func(k Key) bool { return k == d.Key })
				c.replace(d.Key)
			}
		}
	}
	return evictions
}

// end ends any of those that have quota, and creates another one in its queue.
func (c *contended) end() {
	at := c.random.IntN(len(c.holders))
	key := c.holders[at]
	c.holders[at] = c.holders[len(c.holders)-1]
	c.holders = c.holders[:len(c.holders)-1]
	c.replace(key)
}

func (c *contended) replace(key Key) {
	c.create(c.queueOf[key])
	c.Apply(gone(key.Name))
}

// BenchmarkContended measures what the end of one workload takes until all is decided again.
func BenchmarkContended(b *testing.B) {
	for _, options := range []Options{{}, bothStrategies} {
		for _, places := range []bool{false, true} {
			for _, size := range []struct {
				queues, nodesEach, pending int
				priorities                 int32
			}{{1, 2000, 10_000, 3}, {30, 4, 1000, 1}, {30, 4, 10_000, 3}, {300, 4, 30_000, 3}} {
				b.Run(fmt.Sprintf("fair=%v/places=%v/queues=%d/nodes=%d/pending=%d/priorities=%d", options.FairSharing != nil,
					places, size.queues, size.nodesEach, size.pending, size.priorities), func(b *testing.B) {
					c := newContended(options, size.queues, size.nodesEach, size.pending, size.priorities, places)
					c.settle()
					evictions := 0
					b.ReportAllocs()
					for b.Loop() {
						c.end()
						evictions += c.settle()
					}
					b.ReportMetric(float64(len(c.holders)), "holders")
					b.ReportMetric(float64(evictions)/float64(b.N), "evictions/op")
				})
			}
		}
	}
}
