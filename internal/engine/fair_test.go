package engine

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/musterhq/muster/internal/engine/preempt"
	"github.com/musterhq/muster/internal/engine/quota"
)

var (
	bothStrategies = Options{FairSharing: &FairSharing{Strategies: []preempt.Strategy{preempt.LessThanOrEqualToFinalShare,
		preempt.LessThanInitialShare}}}
	finalOnly   = Options{FairSharing: &FairSharing{Strategies: []preempt.Strategy{preempt.LessThanOrEqualToFinalShare}}}
	initialOnly = Options{FairSharing: &FairSharing{Strategies: []preempt.Strategy{preempt.LessThanInitialShare}}}

	reclaimAny = preempt.Policy{Reclaim: preempt.Any}
)

// weighing returns the queue with this fair-sharing weight.
func weighing(q ClusterQueueSet, w quota.Weight) ClusterQueueSet { q.Weight = &w; return q }

// cohortOf returns a cohort with this amount of cpu as its own quota.
func cohortOf(name, parent string, cpu int64) CohortSet {
	return CohortSet{Cohort{Name: name, Parent: parent, Quotas: queueOf(name, "", cpu).Quotas}}
}

// TestEqualWeightsComeToEqualShares: under saturation, queues of equal weight end with equal usage, whatever the order
// of arrival; queues of different weights end with equal usage per unit of weight.
func TestEqualWeightsComeToEqualShares(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := int64(rapid.IntRange(3, 24).Draw(t, "cpu"))
		queues := rapid.IntRange(2, 4).Draw(t, "queues")
		w := emptyWorld(rapid.SampledFrom([]Options{bothStrategies, finalOnly, initialOnly}).Draw(t, "strategies"))
		e := w.engine
		w.apply(defaultFlavor)
		w.apply(cohortOf("lab", "", size))
		for _, n := range rapid.Permutation([]int{0, 1, 2, 3}[:queues]).Draw(t, "order of arrival") {
			name := fmt.Sprint("q", n)
			w.apply(evicting(queueOf(name, "lab", 0), reclaimAny))
			w.apply(localOf(name))
			for i := range int(size) {
				j := job(fmt.Sprint(name, "-", i), name, 1, 1, rapid.Int32Range(0, 1).Draw(t, "priority"), i)
				w.jobs[j.Key.Name] = j
				w.apply(j)
			}
			w.settle(t)
		}
		var used []int64
		for n := range queues {
			used = append(used, e.queues[fmt.Sprint("q", n)].Node.Used(quota.Held,
				e.tree.Index(quota.FlavorResource{Flavor: "default", Resource: "cpu"})))
		}
		if slices.Max(used)-slices.Min(used) > 1 {
			t.Fatalf("usage of %d cpu = %v, want equal shares", size, used)
		}
	})
}

func TestShareOfAQueueAndACohort(t *testing.T) {
	s := newScene(t, bothStrategies, cohortOf("top", "", 6), cohortOf("lab", "top", 3),
		queueOf("q", "lab", 0), localOf("q"))
	s.engine.TakeChangedCohorts()
	s.happens(job("a", "q", 4, 1, 0, 0))
	if u, _ := s.engine.QueueUsage("q"); u.Share == nil || *u.Share != 445 {
		t.Errorf("share of the queue = %v thousandths", u.Share)
	}
	if share, ok := s.engine.CohortShare("lab"); !ok || share != 112 {
		t.Errorf("share of the cohort = %d thousandths, known %v", share, ok)
	}
	if share, ok := s.engine.CohortShare("top"); !ok || share != 0 {
		t.Errorf("share of the root = %d thousandths, known %v", share, ok)
	}
	s.want("the shares change", s.engine.TakeChangedCohorts(), "lab", "top")
	off := newScene(t, Options{}, cohortOf("lab", "", 3), queueOf("q", "lab", 0))
	if u, _ := off.engine.QueueUsage("q"); u.Share != nil {
		t.Error("got a share, want none without fair sharing")
	}
}

// BenchmarkFairDrain measures one decision with and without shares when every workload fits, in one cohort of many
// queues.
func BenchmarkFairDrain(b *testing.B) {
	for name, options := range map[string]Options{"shares": bothStrategies, "none": {}} {
		for _, queues := range []int{10, 100, 1000} {
			b.Run(fmt.Sprintf("%s/queues=%d", name, queues), func(b *testing.B) {
				const size = 10_000
				for b.Loop() {
					b.StopTimer()
					e := New(options)
					e.Apply(defaultFlavor)
					e.Apply(cohortOf("lab", "", size))
					for i := range queues {
						e.Apply(queueOf(fmt.Sprint("q", i), "lab", 0))
						e.Apply(localOf(fmt.Sprint("q", i)))
					}
					for i := range size {
						e.Apply(job(fmt.Sprint("w", i), fmt.Sprint("q", i%queues), 1, 1, 0, i))
					}
					b.StartTimer()
					if got := len(decideAll(e, epoch)); got != size {
						b.Fatalf("%d decisions, want %d", got, size)
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/size, "ns/decision")
			})
		}
	}
}
