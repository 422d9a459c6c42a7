package engine

import (
	"fmt"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/engine/elastic"
)

// BenchmarkGrowthBeside measures a pass over a cohort of 500 queues with four elastic jobs each, of two priorities,
// which have rested or not.
func BenchmarkGrowthBeside(b *testing.B) {
	const queues = 500
	begin := func(each int64, rested func(n int) bool) *Engine {
		e := New(Options{Elastic: elastic.Policy{GrowAfter: time.Minute}})
		e.Apply(defaultFlavor)
		for n := range queues {
			name := fmt.Sprintf("q%03d", n)
			e.Apply(queueOf(name, "lab", each))
			e.Apply(localOf(name))
			for i := range 4 {
				w := in(name, between(fmt.Sprintf("%s-%d", name, i), 2, 8, int32(i/2), 4*n+i))
				w.Version, w.Admitted, w.ReservedAt = 1, true, epoch
				if !rested(n) {
					w.ReservedAt = epoch.Add(time.Minute)
				}
				w.Admission = &Admission{ClusterQueue: name,
					PodSets: []Assignment{{PodSet: "main", Count: 2, Flavors: map[string]string{"cpu": "default"},
						Usage: map[string]int64{"cpu": 2}}}}
				e.Apply(w)
			}
		}
		return e
	}
	all, none := func(int) bool { return true }, func(int) bool { return false }
	half := func(n int) bool { return n%2 == 0 }
	for _, world := range []struct {
		name   string
		each   int64
		rested func(int) bool
	}{
		{"all grow into their own quota", 20, all},
		{"half rest", 20, half},
		{"all rest", 20, none},
		{"nothing is free", 8, all},
		{"half rest and the others borrow what is left", 33, half},
	} {
		b.Run(world.name, func(b *testing.B) {
			b.ReportAllocs()
			passes, longest := 0, time.Duration(0)
			for b.Loop() {
				b.StopTimer()
				e := begin(world.each, world.rested)
				now := epoch.Add(time.Minute + time.Second)
				b.StartTimer()
				for {
					began := time.Now()
					out := e.Decide(now)
					longest = max(longest, time.Since(began))
					passes++
					if len(out) == 0 && !e.Busy() {
						break
					}
				}
			}
			b.ReportMetric(float64(b.Elapsed().Milliseconds())/float64(passes), "ms/pass")
			b.ReportMetric(float64(longest.Milliseconds()), "ms/longest")
		})
	}
}
