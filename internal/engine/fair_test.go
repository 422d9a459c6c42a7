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
	bothStrategies = Options{FairSharing: &FairSharing{Strategies: []preempt.Strategy{preempt.LessThanOrEqualToFinalShare, preempt.LessThanInitialShare}}}
	finalOnly      = Options{FairSharing: &FairSharing{Strategies: []preempt.Strategy{preempt.LessThanOrEqualToFinalShare}}}
	initialOnly    = Options{FairSharing: &FairSharing{Strategies: []preempt.Strategy{preempt.LessThanInitialShare}}}

	reclaimAny = preempt.Policy{Reclaim: preempt.Any}
)

// weighing returns the queue with this fair-sharing weight.
func weighing(q ClusterQueueSet, w quota.Weight) ClusterQueueSet { q.Weight = &w; return q }

// cohortOf returns a cohort with this amount of cpu as its own quota.
func cohortOf(name, parent string, cpu int64) CohortSet {
	return CohortSet{Cohort{Name: name, Parent: parent, Quotas: queueOf(name, "", cpu).Quotas}}
}

// many returns that number of jobs of one pod each, named by the prefix and a number.
func many(prefix, queue string, count int, cpu int64) (events []Event) {
	for i := range count {
		events = append(events, job(fmt.Sprintf("%s%d", prefix, i), queue, 1, cpu, 0, i))
	}
	return events
}

// TestFairOrderAcrossQueues checks which workloads are admitted, and in which order, while there is quota.
func TestFairOrderAcrossQueues(t *testing.T) {
	for name, tc := range map[string]struct {
		given []Event
		want  []string
	}{
		"queues of equal weight alternate": {
			given: []Event{cohortOf("lab", "", 4), queueOf("p", "lab", 0), queueOf("q", "lab", 0),
				job("p1", "p", 1, 1, 0, 0), job("p2", "p", 1, 1, 0, 1), job("q1", "q", 1, 1, 0, 2), job("q2", "q", 1, 1, 0, 3)},
			want: []string{"admit p1 in p", "admit q1 in q", "admit p2 in p", "admit q2 in q"},
		},
		"a queue of three times the weight gets three times as much": {
			given: []Event{cohortOf("lab", "", 4), weighing(queueOf("p", "lab", 0), 3*quota.One), queueOf("q", "lab", 0),
				job("p1", "p", 1, 1, 0, 0), job("p2", "p", 1, 1, 0, 1), job("p3", "p", 1, 1, 0, 2), job("q1", "q", 1, 1, 0, 3)},
			want: []string{"admit p1 in p", "admit p2 in p", "admit p3 in p", "admit q1 in q"},
		},
		"a queue of weight 0 goes last": {
			given: []Event{cohortOf("lab", "", 2), weighing(queueOf("p", "lab", 0), 0), queueOf("q", "lab", 0),
				job("p1", "p", 1, 1, 9, 0), job("q1", "q", 1, 1, 0, 3), job("q2", "q", 1, 1, 0, 3)},
			want: []string{"admit q1 in q", "admit q2 in q", "p1 waits: WaitingForQuota"},
		},
		"workloads that do not borrow go first": {
			given: []Event{cohortOf("lab", "", 1), queueOf("p", "lab", 0), queueOf("q", "lab", 1), job("p1", "p", 2, 1, 9, 0), job("q1", "q", 1, 1, 0, 5)},
			want:  []string{"admit q1 in q", "p1 waits: WaitingForQuota"},
		},
		"priority decides between equal shares": {
			given: []Event{cohortOf("lab", "", 1), queueOf("p", "lab", 0), queueOf("q", "lab", 0), job("p1", "p", 1, 1, 0, 0), job("q1", "q", 1, 1, 1, 5)},
			want:  []string{"admit q1 in q", "p1 waits: WaitingForQuota"},
		},
		"the share includes the workload itself": {
			given: []Event{cohortOf("lab", "", 3), queueOf("p", "lab", 0), queueOf("q", "lab", 0), job("large", "p", 2, 1, 9, 0), job("small", "q", 1, 1, 0, 5), job("next", "q", 1, 1, 0, 6)},
			want:  []string{"admit small in q", "admit large in p", "next waits: WaitingForQuota"},
		},
		"cohorts are compared first, then the queues of one cohort": {
			given: []Event{cohortOf("top", "", 4), cohortOf("left", "top", 0), cohortOf("right", "top", 0),
				queueOf("p", "left", 0), queueOf("q", "right", 0), queueOf("r", "right", 0), localOf("r"),
				job("p1", "p", 1, 1, 0, 5), job("p2", "p", 1, 1, 0, 6), job("q1", "q", 1, 1, 0, 0), job("r1", "r", 1, 1, 0, 1)},
			want: []string{"admit q1 in q", "admit p1 in p", "admit r1 in r", "admit p2 in p"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, bothStrategies, localOf("p"), localOf("q"))
			s.want("the events", s.happens(tc.given...), tc.want...)
		})
	}
}

// TestFairPreemption: a workload arrives in q, in a cohort of 8 cpu that workloads of p use.
func TestFairPreemption(t *testing.T) {
	for name, tc := range map[string]struct {
		options Options
		lent    int64 // quota of the cohort itself
		q       ClusterQueueSet
		p       []Event
		comes   []Event
		want    []string
	}{
		"a queue of smaller share preempts one of larger share": {
			options: bothStrategies, lent: 8, q: evicting(queueOf("q", "lab", 0), reclaimAny), p: many("p", "p", 8, 1),
			comes: []Event{job("q1", "q", 2, 1, 0, 9)},
			want:  []string{"evict p0 for q1: fair share", "evict p1 for q1: fair share", "q1 waits: WaitingForPreemptedWorkloads"},
		},
		"final share: down to equal shares": {
			options: finalOnly, lent: 8, q: evicting(queueOf("q", "lab", 0), reclaimAny), p: []Event{job("p1", "p", 4, 1, 0, 0), job("p2", "p", 4, 1, 0, 1)},
			comes: []Event{job("q1", "q", 4, 1, 0, 9)},
			want:  []string{"evict p1 for q1: fair share", "q1 waits: WaitingForPreemptedWorkloads"},
		},
		"final share: not below equal shares": {
			options: finalOnly, lent: 8, q: evicting(queueOf("q", "lab", 0), reclaimAny), p: []Event{job("p1", "p", 4, 1, 0, 0), job("p2", "p", 4, 1, 0, 1)},
			comes: []Event{job("q1", "q", 5, 1, 0, 9)},
			want:  []string{"q1 waits: WaitingForQuota"},
		},
		"final share: no victim that is too large": {
			options: finalOnly, lent: 8, q: evicting(queueOf("q", "lab", 0), reclaimAny), p: []Event{job("p1", "p", 8, 1, 0, 0)},
			comes: []Event{job("q1", "q", 1, 1, 0, 9)},
			want:  []string{"q1 waits: WaitingForQuota"},
		},
		"initial share: a large victim": {
			options: bothStrategies, lent: 8, q: evicting(queueOf("q", "lab", 0), reclaimAny), p: []Event{job("p1", "p", 8, 1, 0, 0)},
			comes: []Event{job("q1", "q", 1, 1, 0, 9)},
			want:  []string{"evict p1 for q1: fair share", "q1 waits: WaitingForPreemptedWorkloads"},
		},
		"equal shares": {
			options: initialOnly, lent: 8, q: evicting(queueOf("q", "lab", 0), reclaimAny), p: []Event{job("p1", "p", 8, 1, 0, 0)},
			comes: []Event{job("q1", "q", 8, 1, 0, 9)},
			want:  []string{"q1 waits: WaitingForQuota"},
		},
		"different weights": {
			options: finalOnly, lent: 8, q: weighing(evicting(queueOf("q", "lab", 0), reclaimAny), 3*quota.One), p: many("p", "p", 4, 2),
			comes: []Event{job("q1", "q", 6, 1, 0, 9)},
			want:  []string{"evict p0 for q1: fair share", "evict p1 for q1: fair share", "evict p2 for q1: fair share", "q1 waits: WaitingForPreemptedWorkloads"},
		},
		"the queue's own quota is reclaimed whatever the shares": {
			options: finalOnly, lent: 4, q: evicting(queueOf("q", "lab", 4), reclaimAny), p: []Event{job("p1", "p", 8, 1, 0, 0)},
			comes: []Event{job("q1", "q", 4, 1, 0, 9)},
			want:  []string{"evict p1 for q1: reclaimed", "q1 waits: WaitingForPreemptedWorkloads"},
		},
		"the policy compares priorities": {
			options: bothStrategies, lent: 8, q: evicting(queueOf("q", "lab", 0), preempt.Policy{Reclaim: preempt.LowerPriority}), p: many("p", "p", 8, 1),
			comes: []Event{job("q1", "q", 1, 1, 0, 9), job("q2", "q", 1, 1, 1, 9)},
			want:  []string{"evict p0 for q2: fair share", "q2 waits: WaitingForPreemptedWorkloads", "q1 waits: WaitingForQuota"},
		},
		"a queue without preemption": {
			options: bothStrategies, lent: 8, q: queueOf("q", "lab", 0), p: many("p", "p", 8, 1),
			comes: []Event{job("q1", "q", 1, 1, 0, 9)},
			want:  []string{"q1 waits: WaitingForQuota"},
		},
		"the victim is in the queue with the largest share": {
			options: bothStrategies, lent: 8, q: evicting(queueOf("q", "lab", 0), reclaimAny),
			p:     append(many("p", "p", 5, 1), append([]Event{queueOf("r", "lab", 0), localOf("r")}, many("r", "r", 3, 1)...)...),
			comes: []Event{job("q1", "q", 2, 1, 0, 9)},
			want:  []string{"evict p0 for q1: fair share", "evict p1 for q1: fair share", "q1 waits: WaitingForPreemptedWorkloads"},
		},
		"no victim in a queue within its quota": {
			options: bothStrategies, lent: 3, q: evicting(queueOf("q", "lab", 0), reclaimAny),
			p:     append(many("p", "p", 3, 1), append([]Event{queueOf("r", "lab", 5), localOf("r")}, job("r1", "r", 5, 1, 0, 0))...),
			comes: []Event{job("q1", "q", 1, 1, 0, 9), job("q2", "q", 1, 1, 0, 10)},
			want:  []string{"evict p0 for q1: fair share", "q1 waits: WaitingForPreemptedWorkloads", "q2 waits: WaitingForQuota"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, tc.options, cohortOf("lab", "", tc.lent), localOf("p"), localOf("q"), queueOf("p", "lab", 0), tc.q)
			s.happens(tc.p...)
			s.want("the events", s.happens(tc.comes...), tc.want...)
		})
	}
}

// TestQueueOfALargeShareReclaimsItsOwn: q borrows most of the gpu, and so has a larger share than p, which borrows the
// cpu of q. That cpu is q's all the same.
func TestQueueOfALargeShareReclaimsItsOwn(t *testing.T) {
	of := func(name string, cpu, gpu int64) ClusterQueueSet {
		q := byResource(cpu, gpu)
		q.Name, q.Cohort, q.Strategy = name, "lab", BestEffort
		return q
	}
	s := newScene(t, finalOnly, of("lender", 6, 4), of("p", 0, 0), evicting(of("q", 4, 0), reclaimAny), localOf("lender"), localOf("p"), localOf("q"),
		requesting("gpus", 0, 3, 0, 0), job("full", "lender", 6, 1, 0, 1), job("borrows", "p", 4, 1, 0, 2))
	s.want("a workload arrives for q's own cpu", s.happens(job("own", "q", 4, 1, 0, 3)), "evict borrows for own: reclaimed", "own waits: WaitingForPreemptedWorkloads")
}

// TestFairPreemptionAcrossCohorts: q is in the cohort right beside r, and p is in the cohort left. Of the tree's 8 cpu,
// r uses 4 and p uses the other 4.
func TestFairPreemptionAcrossCohorts(t *testing.T) {
	half := cohortOf("left", "top", 0)
	half.Weight = weight(quota.One / 2)
	for name, tc := range map[string]struct {
		left CohortSet
		want []string
	}{
		"the victim is in the same cohort if that has the larger share": {
			left: cohortOf("left", "top", 0),
			want: []string{"evict r0 for q1: fair share", "evict r1 for q1: fair share", "q1 waits: WaitingForPreemptedWorkloads"},
		},
		"the victims are in the other cohort until the shares are equal, then in the same": {
			left: half,
			want: []string{"evict p0 for q1: fair share", "evict r0 for q1: fair share", "q1 waits: WaitingForPreemptedWorkloads"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, finalOnly, cohortOf("top", "", 8), tc.left, cohortOf("right", "top", 0), localOf("p"), localOf("q"), localOf("r"),
				queueOf("p", "left", 0), queueOf("r", "right", 0), evicting(queueOf("q", "right", 0), reclaimAny))
			s.happens(append(many("p", "p", 4, 1), many("r", "r", 4, 1)...)...)
			s.want("the events", s.happens(job("q1", "q", 2, 1, 0, 9)), tc.want...)
		})
	}
}

// TestVictimIsNotRestoredIfTheSharesForbidIt: evicting a workload of the preemptor's own queue makes its share
// small enough to evict p1. There would then be quota for the first victim again, but restoring it would make the share
// larger than p's.
func TestVictimIsNotRestoredIfTheSharesForbidIt(t *testing.T) {
	s := newScene(t, bothStrategies, cohortOf("lab", "", 11), localOf("p"), localOf("q"), queueOf("p", "lab", 0),
		evicting(queueOf("q", "lab", 0), preempt.Policy{Reclaim: preempt.Any, WithinQueue: preempt.LowerPriority}))
	s.happens(job("own", "q", 3, 1, -1, 0), job("p1", "p", 6, 1, 0, 1), job("p2", "p", 2, 1, 0, 2))
	s.want("the events", s.happens(job("q1", "q", 5, 1, 0, 9)),
		"evict own for q1: in queue", "evict p1 for q1: fair share", "q1 waits: WaitingForPreemptedWorkloads")
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
			used = append(used, e.queues[fmt.Sprint("q", n)].node.Used(quota.Held, e.tree.Index(quota.FlavorResource{Flavor: "default", Resource: "cpu"})))
		}
		if slices.Max(used)-slices.Min(used) > 1 {
			t.Fatalf("usage of %d cpu = %v, want equal shares", size, used)
		}
	})
}

func TestShareOfAQueueAndACohort(t *testing.T) {
	s := newScene(t, bothStrategies, cohortOf("top", "", 6), cohortOf("lab", "top", 3), queueOf("q", "lab", 0), localOf("q"))
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

// TestEvictionByKeptQuotaIsReevaluated: quota that is reserved for a claim increases the share of its cohort, so that
// another workload may evict there.
func TestEvictionByKeptQuotaIsReevaluated(t *testing.T) {
	options := bothStrategies
	options.BlockUntilReady = BlockQueue
	s := newScene(t, options, CohortSet{Cohort{Name: "right", Parent: "lab"}}, evicting(queueOf("r", "lab", 4), preempt.Policy{Reclaim: preempt.Any}),
		queueOf("p", "right", 0), strict(queueOf("q", "right", 4)), localOf("r"), localOf("p"), localOf("q"),
		job("borrower", "p", 4, 1, 0, 0), job("running", "r", 2, 1, 0, 0), job("starting", "q", 1, 0, 0, 0))
	s.happens(s.changed("borrower", func(w *Workload) { w.Ready = true }), s.changed("running", func(w *Workload) { w.Ready = true }))
	s.want("a workload arrives that may evict none", s.happens(job("large", "r", 3, 1, 0, 1)), "large waits: WaitingForQuota")
	s.want("an owner of quota arrives, and before it in order a workload without requests", s.happens(job("none", "q", 0, 1, 1, 2), job("own", "q", 3, 1, 0, 3)),
		"none waits: WaitingForPodsReady", "own waits: WaitingForPodsReady")
	s.want("the workload without requests is admitted", s.happens(s.changed("starting", func(w *Workload) { w.Ready = true })),
		"admit none in q", "evict borrower for large: fair share", "large waits: WaitingForPreemptedWorkloads")
}
