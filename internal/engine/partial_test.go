package engine

import (
	"testing"

	"github.com/musterhq/muster/internal/engine/quota"
)

func TestPartialAdmission(t *testing.T) {
	two := func(driver, workers, fewest int32) WorkloadSet {
		w := job("a", "q", driver, 1, 1, 5)
		w.PodSets = append(w.PodSets, PodSet{Name: "workers", Count: workers, MinCount: fewest, PerPod: map[string]int64{"cpu": 1}})
		return w
	}
	for name, tc := range map[string]struct {
		queue     ClusterQueueSet
		running   []Event
		submitted WorkloadSet
		want      []string
	}{
		"the full size fits": {
			queue: queueOf("q", "", 8), submitted: smaller(job("a", "q", 8, 1, 1, 5), 1),
			want: []string{"admit a in q"}},
		"the largest size that fits": {
			queue: queueOf("q", "", 8), running: []Event{job("b", "q", 3, 1, 1, 0)}, submitted: smaller(job("a", "q", 8, 1, 1, 5), 1),
			want: []string{"admit a in q, 5 of 8 main"}},
		"a full size beyond all quota": {
			queue: queueOf("q", "", 8), submitted: smaller(job("a", "q", 100, 1, 1, 5), 1),
			want: []string{"admit a in q, 8 of 100 main"}},
		"a large job": {
			queue: queueOf("q", "", 48), submitted: smaller(job("a", "q", 50, 1, 1, 5), 1),
			want: []string{"admit a in q, 48 of 50 main"}},
		"the minimum fits": {
			queue: queueOf("q", "", 8), running: []Event{job("b", "q", 7, 1, 1, 0)}, submitted: smaller(job("a", "q", 8, 1, 1, 5), 1),
			want: []string{"admit a in q, 1 of 8 main"}},
		"less than the minimum fits": {
			queue: queueOf("q", "", 8), running: []Event{job("b", "q", 7, 1, 1, 0)}, submitted: smaller(job("a", "q", 8, 1, 1, 5), 2),
			want: []string{"a waits: WaitingForQuota"}},
		"a pod set without a minimum": {
			queue: queueOf("q", "", 8), submitted: two(4, 8, 2),
			want: []string{"admit a in q, 4 of 8 workers"}},
		"the full size by preemption rather than a smaller one without": {
			queue: evicting(queueOf("q", "", 8), lower), running: []Event{job("b", "q", 4, 1, 0, 0)}, submitted: smaller(job("a", "q", 8, 1, 1, 5), 1),
			want: []string{"evict b for a: in queue", "a waits: WaitingForPreemptedWorkloads"}},
		"a smaller size by preemption rather than none": {
			queue: evicting(queueOf("q", "", 8), lower), running: []Event{job("b", "q", 4, 1, 0, 0), job("c", "q", 4, 1, 1, 0)}, submitted: smaller(job("a", "q", 8, 1, 1, 5), 2),
			want: []string{"evict b for a: in queue", "a waits: WaitingForPreemptedWorkloads"}},
		"a minCount above the count is the count": {
			queue: queueOf("q", "", 8), running: []Event{job("b", "q", 7, 1, 1, 0)}, submitted: smaller(job("a", "q", 2, 1, 1, 5), 9),
			want: []string{"a waits: WaitingForQuota"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, Options{}, append([]Event{tc.queue, localOf("q")}, tc.running...)...)
			s.want("the events", s.happens(tc.submitted), tc.want...)
		})
	}
}

func TestPartialAdmissionByPreemptionHasItsSize(t *testing.T) {
	s := newScene(t, Options{}, evicting(queueOf("q", "", 8), lower), localOf("q"), job("b", "q", 4, 1, 0, 0), job("c", "q", 4, 1, 1, 0))
	s.happens(smaller(job("a", "q", 8, 1, 1, 5), 2))
	s.want("the victim's pods are gone", s.happens(s.stopped("b")), "admit a in q, 4 of 8 main", "b waits: WaitingForQuota")
}

func TestEndedPodsReleaseTheirQuota(t *testing.T) {
	s := newScene(t, Options{}, queueOf("q", "", 4), localOf("q"), job("a", "q", 4, 1, 0, 0))
	s.want("no quota", s.happens(job("b", "q", 2, 1, 0, 1)), "b waits: WaitingForQuota")
	ended := func(count int32) WorkloadSet {
		return s.changed("a", func(w *Workload) {
			w.PodSets[0].Reclaimable = 4 - count
			w.Admission = &Admission{ClusterQueue: "q", PodSets: []Assignment{{
				PodSet: "main", Count: count, Flavors: map[string]string{"cpu": "default"}, Usage: map[string]int64{"cpu": int64(count)}}}}
		})
	}
	s.want("one pod has ended", s.happens(ended(3)))
	s.want("two pods have ended", s.happens(ended(2)), "admit b in q")
	s.want("the job is evicted", s.happens(s.changed("a", func(w *Workload) { w.Evicted = true })))
	s.want("its pods are gone, and the rest fits", s.happens(s.stopped("a")), "admit a in q, 2 of 4 main")
}

// TestPodSetsOverOneResourceAreSplitSoThatAllFit: flavors are chosen so that all pod sets fit, where the first choice
// of one pod set would take what another needs. The same holds once evicted workloads are gone.
func TestPodSetsOverOneResourceAreSplitSoThatAllFit(t *testing.T) {
	q := queueOf("q", "", 4)
	q.Groups[0].Flavors = []string{"default", "spot"}
	q.Quotas[quota.FlavorResource{Flavor: "spot", Resource: "cpu"}] = quota.Limits{Nominal: 2, Borrowing: quota.Unlimited, Lending: quota.Unlimited}
	two := job("two", "q", 1, 2, 0, 1)
	two.PodSets = append(two.PodSets, PodSet{Name: "large", Count: 1, PerPod: map[string]int64{"cpu": 4}})
	s := newScene(t, Options{}, q, FlavorSet{Flavor{Name: "spot"}}, localOf("q"))
	s.want("only one combination fits", s.happens(two), "admit two in q")
	s.want("it ends, and too little of spot is left", s.happens(gone("two"), job("a", "q", 1, 4, 0, 0), job("b", "q", 1, 1, 0, 0)),
		"admit a in q", "admit b in q")
	s.want("it is submitted again", s.happens(two), "two waits: WaitingForQuota")
	s.want("the first flavor is released", s.happens(gone("a")))
	s.want("the second flavor is released", s.happens(gone("b")), "admit two in q")
}

// TestStartNeedsAtLeastOnePod: a job admitted with no pods would never finish.
func TestStartNeedsAtLeastOnePod(t *testing.T) {
	ended := func(count, pods int32) WorkloadSet {
		w := smaller(job("a", "q", count, 1, 1, 5), 3)
		w.PodSets[0].Reclaimable = pods
		return w
	}
	for name, tc := range map[string]struct {
		free      int64
		submitted WorkloadSet
		want      []string
	}{
		"no pod fits":                     {0, ended(10, 8), []string{"a waits: WaitingForQuota"}},
		"one pod fits":                    {1, ended(10, 8), []string{"admit a in q, 1 of 10 main"}},
		"more pods fit":                   {2, ended(10, 8), []string{"admit a in q, 2 of 10 main"}},
		"no pod is needed":                {0, ended(10, 10), []string{"admit a in q, 0 of 10 main"}},
		"the minimum less the ended pods": {1, ended(10, 2), []string{"admit a in q, 1 of 10 main"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, Options{}, queueOf("q", "", 8), localOf("q"), job("b", "q", int32(8-tc.free), 1, 1, 0))
			s.want("the events", s.happens(tc.submitted), tc.want...)
		})
	}
}
