package engine

import (
	"fmt"
	"slices"
	"testing"

	"github.com/musterhq/muster/internal/engine/quota"
)

// TestAnyPodsOfAWorkloadSuffice: a workload that needs a number of pods of any of its pod sets gets those that fit, in
// order, and one that does not fit holds up no other.
func TestAnyPodsOfAWorkloadSuffice(t *testing.T) {
	set := func(name string, count, together int32, perPod map[string]int64) PodSet {
		return PodSet{Name: name, Count: count, MinCount: 1, Together: together, PerPod: perPod}
	}
	cpu := func(n int64) map[string]int64 { return map[string]int64{"cpu": n} }
	of := func(sets ...PodSet) WorkloadSet {
		w := job("a", "q", 1, 1, 1, 5)
		w.PodSets = sets
		return w
	}
	nine := func(together int32) (sets []PodSet) {
		for _, name := range []string{"t0", "t1", "t2", "t3", "t4", "t5", "t6", "t7", "t8"} {
			sets = append(sets, set(name, 1, together, cpu(1)))
		}
		return sets
	}
	hard := set("main", 1, 0, cpu(1))
	hard.MinCount = 0
	for name, tc := range map[string]struct {
		running   []Event
		submitted WorkloadSet
		want      []string
	}{
		"all of them": {nil, of(set("x", 2, 1, cpu(1)), set("y", 2, 1, cpu(1))), []string{"admit a in q"}},
		"the first pod set fits never": {nil, of(set("x", 1, 1, cpu(9)), set("y", 2, 1, cpu(1))),
			[]string{"admit a in q, 0 of 1 x"}},
		"the last one does":                {nil, of(set("x", 2, 1, cpu(1)), set("y", 1, 1, cpu(9))), []string{"admit a in q, 0 of 1 y"}},
		"nine pod sets of one pod":         {nil, of(nine(1)...), []string{"admit a in q, 0 of 1 t8"}},
		"nine that must all run":           {nil, of(nine(9)...), []string{"a waits: ExceedsMaxQuota"}},
		"part of a pod set":                {[]Event{job("b", "q", 5, 1, 1, 0)}, of(set("x", 1, 1, cpu(9)), set("y", 8, 1, cpu(1))), []string{"admit a in q, 0 of 1 x, 3 of 8 y"}},
		"too few":                          {[]Event{job("b", "q", 6, 1, 1, 0)}, of(set("x", 1, 3, cpu(9)), set("y", 8, 3, cpu(1))), []string{"a waits: WaitingForQuota"}},
		"of two pod sets together":         {[]Event{job("b", "q", 5, 1, 1, 0)}, of(set("x", 2, 3, cpu(1)), set("y", 8, 3, cpu(1))), []string{"admit a in q, 1 of 8 y"}},
		"a resource that no queue has":     {nil, of(set("x", 1, 1, map[string]int64{"gpu": 1}), set("y", 1, 1, cpu(1))), []string{"admit a in q, 0 of 1 x"}},
		"only resources that no queue has": {nil, of(set("x", 1, 1, map[string]int64{"gpu": 1}), set("y", 1, 1, map[string]int64{"gpu": 1})), []string{"a waits: NoMatchingFlavor"}},
		"small pods where a large one leaves too little": {nil, of(set("x", 1, 3, cpu(7)), set("y", 3, 3, cpu(1)), set("z", 1, 3, cpu(6))),
			[]string{"admit a in q, 0 of 1 x, 0 of 1 z"}},
		"beside a pod set that must run":    {[]Event{job("b", "q", 7, 1, 1, 0)}, of(hard, set("y", 2, 1, cpu(1))), []string{"admit a in q, 0 of 2 y"}},
		"which does not fit":                {[]Event{job("b", "q", 8, 1, 1, 0)}, of(hard, set("y", 2, 1, cpu(1))), []string{"a waits: WaitingForQuota"}},
		"beside one that makes up for it":   {[]Event{job("b", "q", 5, 1, 1, 0)}, of(set("x", 1, 3, cpu(1)), set("y", 4, 0, cpu(1))), []string{"admit a in q, 2 of 4 y"}},
		"beside one that cannot make up":    {[]Event{job("b", "q", 6, 1, 1, 0)}, of(set("x", 1, 3, cpu(1)), set("y", 4, 0, cpu(1))), []string{"a waits: WaitingForQuota"}},
		"without pods, and one that cannot": {[]Event{job("b", "q", 7, 1, 1, 0)}, of(set("x", 0, 2, cpu(1)), set("y", 2, 0, cpu(1))), []string{"a waits: WaitingForQuota"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, Options{}, append([]Event{queueOf("q", "", 8), localOf("q")}, tc.running...)...)
			s.want("the events", s.happens(tc.submitted), tc.want...)
		})
	}
}

// TestAWorkloadOfAnyPodsIsTriedAgain whenever there is more of what any of its pod sets was short of.
func TestAWorkloadOfAnyPodsIsTriedAgain(t *testing.T) {
	q := queueOf("q", "", 8)
	q.Groups[0].Resources = append(q.Groups[0].Resources, "gpu")
	q.Quotas[quota.FlavorResource{Flavor: "default", Resource: "gpu"}] = q.Quotas[quota.FlavorResource{Flavor: "default", Resource: "cpu"}]
	w := job("a", "q", 1, 8, 0, 5)
	w.PodSets = append(w.PodSets, PodSet{Name: "y", Count: 1, MinCount: 1, Together: 1, PerPod: map[string]int64{"gpu": 8}})
	w.PodSets[0].MinCount, w.PodSets[0].Together = 1, 1
	gpus := job("g", "q", 1, 0, 0, 0)
	gpus.PodSets[0].PerPod = map[string]int64{"gpu": 1}
	s := newScene(t, Options{}, q, localOf("q"), job("b", "q", 1, 1, 0, 0), gpus)
	s.want("neither fits", s.happens(w), "a waits: WaitingForQuota")
	s.want("the second does", s.happens(gone("g")), "admit a in q, 0 of 1 main")
}

// TestPodsBeyondThoseThatMustRunEvictNobody.
func TestPodsBeyondThoseThatMustRunEvictNobody(t *testing.T) {
	w := job("a", "q", 2, 3, 1, 5)
	w.PodSets = append(w.PodSets, PodSet{Name: "y", Count: 1, MinCount: 1, Together: 1, PerPod: map[string]int64{"cpu": 9}})
	w.PodSets[0].MinCount, w.PodSets[0].Together = 1, 1
	s := newScene(t, Options{}, evicting(queueOf("q", "", 8), lower), localOf("q"), job("b", "q", 1, 4, 0, 0))
	s.want("one pod fits beside the other job", s.happens(w), "admit a in q, 1 of 2 main, 0 of 1 y")
}

// TestAnElasticPodSetMakesUpForThoseWithoutPods: a job of x and y that needs 3 pods and got none of x keeps 3 of y when it
// shrinks, although y itself may have one.
func TestAnElasticPodSetMakesUpForThoseWithoutPods(t *testing.T) {
	w := job("a", "q", 1, 9, 0, 5)
	w.PodSets[0].MinCount, w.PodSets[0].Together = 1, 3
	w.PodSets = append(w.PodSets, PodSet{Name: "y", Count: 6, MinCount: 1, Together: 3, Elastic: 0.85, PerPod: map[string]int64{"cpu": 1}})
	s := newScene(t, Options{}, evicting(queueOf("q", "", 8), lower), localOf("q"))
	s.want("x does not fit", s.happens(w), "admit a in q, 0 of 1 main")
	s.want("y shrinks for another job", s.happens(job("b", "q", 5, 1, 1, 6)), "resize a from 6 to 3 for b", "b waits: WaitingForPreemptedWorkloads")
}

// TestAJobOfWhichSomePodsFitIsNotToldThatNodesNeverSuffice: the first pod set fits on no node, and of the second one pod
// will.
func TestAJobOfWhichSomePodsFitIsNotToldThatNodesNeverSuffice(t *testing.T) {
	jobOf := func(together int32) WorkloadSet {
		w := job("a", "q", 1, 9, 0, 5)
		w.PodSets[0].MinCount, w.PodSets[0].Together = 1, together
		w.PodSets = append(w.PodSets, PodSet{Name: "y", Count: 1, MinCount: 1, Together: together, PerPod: map[string]int64{"cpu": 4}})
		return w
	}
	for together, want := range map[int32]string{1: "a waits: TopologyPlacementFailed", 2: "a waits: ExceedsNodes"} {
		s := newScene(t, Options{}, slices.Concat(onNodes, []Event{queueOf("q", "", 100), localOf("q"), node("n", "r", 8)})...)
		s.happens(job("b", "q", 1, 5, 0, 0))
		s.want(fmt.Sprint(together, " must run"), s.happens(jobOf(together)), want)
		if together == 1 {
			s.want("there is room", s.happens(gone("b")), "admit a in q, 0 of 1 main")
		}
	}
}
