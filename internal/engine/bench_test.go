package engine

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/engine/preempt"
)

// backlog returns an engine with pending workloads over several queues, none of which was evaluated yet. Each queue
// can hold slots of them at a time.
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

// BenchmarkDrain measures one decision when every workload fits.
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

// BenchmarkApply measures the event of one new workload.
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

// longest has the longest step of each round, and reports the median of the rounds, because other load on the machine
// makes some of them longer.
type longest []time.Duration

func (l *longest) step(do func()) {
	began := time.Now()
	do()
	(*l)[len(*l)-1] = max((*l)[len(*l)-1], time.Since(began))
}

func (l *longest) round() { *l = append(*l, 0) }

func (l *longest) report(b *testing.B) {
	slices.Sort(*l)
	b.ReportMetric(float64((*l)[len(*l)/2].Microseconds()), "us/longest-step")
}

// BenchmarkReconfigure routes all waiting workloads again, and reports the longest pass.
func BenchmarkReconfigure(b *testing.B) {
	for _, size := range []int{1_000, 10_000, 100_000} {
		b.Run(fmt.Sprintf("pending=%d", size), func(b *testing.B) {
			e := backlog(size, 1, 0)
			decideAll(e, epoch)
			var steps longest
			b.ReportAllocs()
			for b.Loop() {
				steps.round()
				steps.step(func() { e.Apply(queueOf("q0", "", 0)) })
				for e.Busy() {
					steps.step(func() { e.Decide(epoch) })
				}
			}
			steps.report(b)
		})
	}
}

// BenchmarkDecide measures a pass in which one workload ends and the next one is admitted, while many wait.
func BenchmarkDecide(b *testing.B) {
	for _, size := range []int{1_000, 10_000, 100_000} {
		b.Run(fmt.Sprintf("pending=%d", size), func(b *testing.B) {
			e := backlog(size, 30, 1)
			holders, at := map[string]string{}, size // by queue
			admitted := func(d Decision) {
				holders[d.Admit.ClusterQueue] = d.Key.Name
				e.Apply(Written{Key: d.Key, UID: d.UID, Version: 1})
			}
			for _, d := range decideAll(e, epoch) {
				if d.Admit != nil {
					admitted(d)
				}
			}
			b.ReportAllocs()
			for b.Loop() {
				// The new one is last in order, so that as many wait as before.
				queue := fmt.Sprintf("q%d", at%30)
				e.Apply(job(fmt.Sprintf("w%d", at), queue, 1, 1, 0, at))
				e.Apply(gone(holders[queue]))
				got := decideAll(e, epoch)
				if len(got) == 0 || got[0].Admit == nil {
					b.Fatalf("got decisions %+v, want one admission", got)
				}
				admitted(got[0])
				at++
			}
		})
	}
}

// BenchmarkRelocate points a LocalQueue to another ClusterQueue, with all waiting workloads, and reports the longest
// step, be it an event or a pass.
func BenchmarkRelocate(b *testing.B) {
	for _, size := range []int{1_000, 10_000, 100_000} {
		b.Run(fmt.Sprintf("pending=%d", size), func(b *testing.B) {
			e := backlog(size, 1, 0)
			e.Apply(queueOf("q1", "", 0))
			decideAll(e, epoch)
			var steps longest
			b.ReportAllocs()
			for n := 1; b.Loop(); n++ {
				to := LocalQueueSet{LocalQueue{Key: Key{Namespace: "ns", Name: "q0"}, ClusterQueue: fmt.Sprintf("q%d", n%2)}}
				steps.round()
				steps.step(func() { e.Apply(to) })
				for e.Busy() {
					steps.step(func() { e.Decide(epoch) })
				}
			}
			steps.report(b)
		})
	}
}

// BenchmarkCohort measures the creation, admission and end of one workload in a cohort of many queues that may preempt,
// each with waiting workloads.
func BenchmarkCohort(b *testing.B) {
	for _, size := range []int{10, 100, 1_000} {
		b.Run(fmt.Sprintf("queues=%d", size), func(b *testing.B) {
			e := New(Options{})
			e.Apply(defaultFlavor)
			for i := range size {
				name := fmt.Sprintf("q%d", i)
				e.Apply(evicting(queueOf(name, "lab", 1),
					preempt.Policy{WithinQueue: preempt.LowerPriority, Reclaim: preempt.LowerPriority}))
				e.Apply(localOf(name))
				e.Apply(job("large-"+name, name, int32(size)+1, 1, 1, i))
			}
			decideAll(e, epoch)
			next := job("next", "q0", 1, 1, 0, 0)
			b.ReportAllocs()
			for b.Loop() {
				e.Apply(next)
				if got := e.Decide(epoch); len(got) != 1 || got[0].Admit == nil {
					b.Fatalf("got decisions %+v, want one admission", got)
				}
				e.Apply(Written{Key: next.Key, UID: next.UID, Version: 1})
				e.Decide(epoch)
				e.Apply(gone("next"))
				e.Decide(epoch)
			}
		})
	}
}

// BenchmarkElastic measures a pass over 1,000 elastic jobs on 10,000 GPUs after one of them has ended, so that others
// grow, and after one was created, for which others shrink.
func BenchmarkElastic(b *testing.B) {
	begin := func() (*Engine, int) {
		e := New(Options{})
		e.Apply(defaultFlavor)
		q := queueOf("q", "", 10000)
		e.Apply(q)
		e.Apply(localOf("q"))
		version := int64(0)
		for i := range 1000 {
			w := between(fmt.Sprintf("j%04d", i), 1+int32(i%4), 4+2*int32(i%13), int32(i%3), i)
			size := min(w.PodSets[0].Count, 10)
			version++
			w.Version, w.Admitted, w.ReservedAt = version, true, epoch
			w.Admission = &Admission{ClusterQueue: "q", PodSets: []Assignment{{PodSet: "main", Count: size,
				Flavors: map[string]string{"cpu": "default"}, Usage: map[string]int64{"cpu": int64(size)}}}}
			e.Apply(w)
		}
		return e, 0
	}
	b.Run("sizes are evaluated", func(b *testing.B) {
		e, _ := begin()
		full := queueOf("q", "", 8000)
		for decideAll(e, epoch) != nil {
		}
		b.ReportAllocs()
		for b.Loop() {
			e.Apply(full)
			e.Decide(epoch)
		}
	})
	b.Run("all grow", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			b.StopTimer()
			e, _ := begin()
			b.StartTimer()
			e.Decide(epoch)
		}
	})
	b.Run("some shrink", func(b *testing.B) {
		for b.Loop() {
			b.StopTimer()
			e, _ := begin()
			for _, d := range decideAll(e, epoch) {
				e.Apply(Written{Key: d.Key, UID: d.UID, Version: 5000})
			}
			e.Apply(job("new", "q", 3000, 1, 2, 5000))
			b.StartTimer()
			e.Decide(epoch)
		}
	})
}
