package engine

import (
	"fmt"
	"testing"
)

// backlog is an engine with so many pending workloads over so many queues, none of
// which was looked at yet. Every queue holds slots of them at a time.
func backlog(workloads, queues int, slots int64) *Engine {
	e := New(Options{})
	e.Apply(defaultFlavor)
	for i := range queues {
		name := fmt.Sprintf("q%d", i)
		e.Apply(queueOf(name, "", slots))
		e.Apply(localOf(name))
	}
	for i := range workloads {
		e.Apply(job(fmt.Sprintf("w%d", i), fmt.Sprintf("q%d", i%queues), 1, 1, 0, i))
	}
	return e
}

// BenchmarkDrain: everybody fits; the cost of one decision.
func BenchmarkDrain(b *testing.B) {
	for _, size := range []int{1_000, 10_000, 100_000} {
		b.Run(fmt.Sprintf("pending=%d", size), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				b.StopTimer()
				e := backlog(size, size/50, int64(size))
				b.StartTimer()
				if got := len(decideAll(e, epoch)); got != size {
					b.Fatalf("%d decisions, want %d", got, size)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(size), "ns/decision")
		})
	}
}

// BenchmarkApply: the cost of taking in one new workload.
func BenchmarkApply(b *testing.B) {
	for _, size := range []int{1_000, 10_000, 100_000} {
		b.Run(fmt.Sprintf("pending=%d", size), func(b *testing.B) {
			e := backlog(size, 30, 0)
			next := job("next", "q0", 1, 1, 0, 0)
			b.ReportAllocs()
			for b.Loop() {
				e.Apply(next)
				e.Apply(gone("next"))
			}
		})
	}
}
