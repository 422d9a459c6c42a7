package engine

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/engine/elastic"
	"github.com/musterhq/muster/internal/engine/flavor"
	"github.com/musterhq/muster/internal/engine/place"
	"github.com/musterhq/muster/internal/engine/preempt"
	"github.com/musterhq/muster/internal/engine/quota"
)

// between returns a job of fewest to most pods of one cpu each.
func between(name string, fewest, most int32, priority int32, second int) WorkloadSet {
	w := smaller(job(name, "q", most, 1, priority, second), fewest)
	w.PodSets[0].Elastic = elastic.DefaultExponent
	return w
}

// shrunk returns the job after its surplus pods are gone.
func (s *scene) shrunk(name string) WorkloadSet {
	return s.changed(name, func(w *Workload) {
		given := *w.Admission
		given.PodSets = slices.Clone(given.PodSets)
		given.PodSets[0].Surplus = nil
		w.Admission = &given
	})
}

// sizes lets evicted and surplus pods terminate until nothing more is decided, and returns the size of each job.
func (s *scene) sizes(names ...string) []int32 {
	s.Helper()
	for range 50 {
		var events []Event
		for name, job := range s.jobs {
			switch {
			case job.Evicted:
				events = append(events, s.stopped(name))
			case job.Admission.hasSurplus():
				events = append(events, s.shrunk(name))
			}
		}
		if decided := s.happens(events...); len(events) == 0 && len(decided) == 0 {
			break
		}
	}
	var out []int32
	for _, name := range names {
		if a := s.engine.Holds(Key{Namespace: "ns", Name: name}); a != nil {
			out = append(out, a.PodSets[0].Count)
		} else {
			out = append(out, 0)
		}
	}
	return out
}

// wantSizes compares the sizes of the jobs; when describes the situation.
func (s *scene) wantSizes(when string, names []string, want ...int32) {
	s.Helper()
	if got := s.sizes(names...); !slices.Equal(got, want) {
		s.Errorf("%s: sizes of %v = %v, want %v", when, names, got, want)
	}
}

// TestWorkedCases checks the worked cases of the public description, which are binding.
func TestWorkedCases(t *testing.T) {
	both := []string{"job1", "job2"}
	begin := func(t *testing.T) *scene {
		s := newScene(t, Options{}, queueOf("q", "", 5), localOf("q"), between("job1", 2, 4, 0, 0))
		s.wantSizes("only job1", both, 4, 0)
		s.happens(between("job2", 2, 4, 0, 1))
		s.wantSizes("job2 arrives", both, 3, 2)
		return s
	}
	t.Run("a priority is raised, and its job deleted", func(t *testing.T) {
		s := begin(t)
		s.happens(s.changed("job2", func(w *Workload) { w.Priority = 1 }))
		s.wantSizes("job2 has a higher priority", both, 0, 4)
		s.happens(gone("job2"))
		s.wantSizes("job2 is deleted", both, 4, 0)
	})
	t.Run("a priority is raised, and the other job deleted", func(t *testing.T) {
		s := begin(t)
		s.happens(s.changed("job2", func(w *Workload) { w.Priority = 1 }), gone("job1"))
		s.wantSizes("job1 is deleted", both, 0, 4)
	})
	t.Run("the other job is deleted", func(t *testing.T) {
		s := begin(t)
		s.happens(gone("job1"))
		s.wantSizes("job1 is deleted", both, 0, 4)
	})
	t.Run("one job has a fixed size", func(t *testing.T) {
		s := newScene(t, Options{}, queueOf("q", "", 5), localOf("q"), between("job1", 3, 3, 0, 0))
		s.happens(between("job2", 1, 3, 0, 1))
		s.wantSizes("both jobs", both, 3, 2)
	})
	for name, at := range map[string][3]int{"in this order": {0, 1, 2}, "C first": {1, 2, 0}} {
		t.Run("three jobs on nine units, "+name, func(t *testing.T) {
			s := newScene(t, Options{}, queueOf("q", "", 9), localOf("q"))
			s.happens(between("A", 2, 4, 0, at[0]), between("B", 2, 4, 0, at[1]), between("C", 2, 2, 0, at[2]))
			s.wantSizes("all three jobs", []string{"A", "B", "C"}, 4, 3, 2)
		})
	}
	t.Run("two jobs on four units", func(t *testing.T) {
		s := newScene(t, Options{}, queueOf("q", "", 4), localOf("q"), between("job1", 2, 4, 0, 0))
		s.happens(between("job2", 2, 4, 0, 1))
		s.wantSizes("minimum sizes come first", both, 2, 2)
	})
}

// TestEqualPriorityGetsNoMoreThanItsMinimum: jobs shrink for an equal priority only up to its minimum, even in a queue
// where a higher priority may evict others. It also gets free quota, and that of lower priorities.
func TestEqualPriorityGetsNoMoreThanItsMinimum(t *testing.T) {
	three := []string{"job1", "job2", "job3"}
	for _, policy := range []preempt.Rule{preempt.Never, preempt.LowerPriority, preempt.LowerOrNewerEqualPriority} {
		begin := func(t *testing.T, nominal int64) *scene {
			q := queueOf("q", "", nominal)
			q.Preemption.WithinQueue = policy
			s := newScene(t, Options{}, q, localOf("q"), between("job1", 1, 4, 0, 0))
			s.wantSizes("only job1", three, 4, 0, 0)
			return s
		}
		t.Run(fmt.Sprint(policy), func(t *testing.T) {
			s := begin(t, 6)
			s.happens(between("job2", 1, 4, 0, 1))
			s.wantSizes("more than the minimum is free", three, 4, 2, 0)
			s.happens(between("job3", 2, 4, 0, 2))
			s.wantSizes("nothing is free", three, 2, 2, 2)

			s = begin(t, 6)
			s.happens(between("job2", 1, 4, -1, 1))
			s.wantSizes("a job of lower priority", three, 4, 2, 0)
			s.happens(between("job3", 1, 4, 0, 2))
			s.wantSizes("a job of the priority of the first", three, 4, 0, 2)

			s = begin(t, 6)
			s.happens(between("job2", 1, 4, 1, 1))
			s.wantSizes("a job of higher priority", three, 2, 4, 0)
		})
	}
}

// TestCapacityIsFreeOnlyWhenPodsAreGone: a shrinking job holds the quota of its pods until they are gone.
func TestCapacityIsFreeOnlyWhenPodsAreGone(t *testing.T) {
	s := newScene(t, Options{}, queueOf("q", "", 4), localOf("q"), between("large", 1, 4, 0, 0))
	s.want("another workload arrives", s.happens(job("rigid", "q", 2, 1, 0, 1)), "resize large from 4 to 2 for rigid", "rigid waits: WaitingForPreemptedWorkloads")
	if used, _ := s.engine.QueueUsage("q"); used.Reserved[quota.FlavorResource{Flavor: "default", Resource: "cpu"}] != 4 {
		t.Errorf("reserved = %v while the pods exist, want all of it", used.Reserved)
	}
	s.want("another job arrives", s.happens(job("thief", "q", 2, 1, -1, 2)), "thief waits: WaitingForQuota")
	s.want("the surplus pods are gone", s.happens(s.shrunk("large")), "admit rigid in q")
	s.want("the rigid job ends", s.happens(gone("rigid")), "resize large from 2 to 4")
	s.want("the elastic job ends", s.happens(gone("large")), "admit thief in q")
}

// TestLowerPriorityTakesNothingFromElasticJobs: a workload of lower priority gets not even what is above the minimum
// size.
func TestLowerPriorityTakesNothingFromElasticJobs(t *testing.T) {
	s := newScene(t, Options{}, queueOf("q", "", 4), localOf("q"), between("large", 1, 4, 1, 0))
	s.want("a workload of lower priority arrives", s.happens(job("low", "q", 1, 1, 0, 1)), "low waits: WaitingForQuota")
}

// TestPlainPartialAdmissionKeepsItsSize: only elastic jobs are resized.
func TestPlainPartialAdmissionKeepsItsSize(t *testing.T) {
	s := newScene(t, Options{}, queueOf("q", "", 4), localOf("q"), smaller(job("plain", "q", 4, 1, 0, 0), 1))
	s.want("another workload arrives", s.happens(job("rigid", "q", 2, 1, 0, 1)), "rigid waits: WaitingForQuota")
}

// TestAClaimKeepsNothingFromGrowthOfAHigherPriority: in a cohort a queue keeps its own quota for the workload that waits
// for more of it. A running job of the same queue and of a higher priority grows into it all the same: it comes first,
// and the quota would be kept from lower priorities for it, so that nobody would have it.
func TestAClaimKeepsNothingFromGrowthOfAHigherPriority(t *testing.T) {
	all := []string{"grows", "large", "low"}
	s := newScene(t, Options{}, queueOf("q", "all", 12), queueOf("r", "all", 0), localOf("q"), job("stays", "q", 4, 1, 20, 0), job("ends", "q", 6, 1, 20, 1))
	s.happens(between("grows", 1, 5, 10, 2), job("large", "q", 9, 1, 0, 3), between("low", 3, 4, -10, 4))
	s.wantSizes("all of the quota is in use", all, 2, 0, 0)
	s.happens(gone("ends"))
	s.wantSizes("six are free, and the one that waits needs nine", all, 5, 0, 3)
}

// TestGrowthThatIsAwaitedKeepsNoneFromOtherResources: while a workload waits for the growth of another, which is to be soon,
// others grow into what neither needs.
func TestGrowthThatIsAwaitedKeepsNoneFromOtherResources(t *testing.T) {
	q := byResource(8, 4)
	q.Cohort = "lab"
	s := newScene(t, Options{Elastic: elastic.Policy{GrowAfter: 30 * time.Second}}, q, queueOf("r", "lab", 0), localOf("q"), job("ends", "q", 6, 1, 20, 0), requesting("gpus", 0, 3, 20, 1))
	low := between("low", 1, 3, -10, 2)
	low.PodSets[0].PerPod = map[string]int64{"gpu": 1}
	s.happens(low)
	s.now = s.now.Add(20 * time.Second)
	s.happens(between("grows", 2, 5, 10, 3))
	s.wantSizes("all is in use", []string{"low", "grows"}, 1, 2)
	s.now = s.now.Add(11 * time.Second)
	s.want("much is free, and a workload leaves it for growth", s.happens(gone("ends"), gone("gpus"), job("waits", "q", 5, 1, 0, 4)),
		"resize low from 1 to 3", "waits waits: WaitingForQuota")
	s.now = s.now.Add(19 * time.Second)
	s.want("it grows", s.happens(), "resize grows from 2 to 5")
}

func TestGrowthIsDamped(t *testing.T) {
	s := newScene(t, Options{Elastic: elastic.Policy{GrowAfter: 30 * time.Second}}, queueOf("q", "", 4), localOf("q"), between("large", 1, 4, 0, 0))
	s.happens(job("rigid", "q", 2, 1, 0, 1), job("soon", "q", 1, 1, 0, 2))
	s.happens(s.shrunk("large"), gone("soon"))
	s.want("the other job ends at once", s.happens(gone("rigid")))
	due := s.engine.Due()
	if due != epoch.Add(30*time.Second) {
		t.Fatalf("next pass due at %s, want after 30 s", due)
	}
	s.now = due.Add(-time.Second)
	s.want("one second before the retry time", s.happens())
	s.now = due
	s.want("the damping time has passed", s.happens(), "resize large from 1 to 4")
	if due := s.engine.Due(); !due.IsZero() {
		t.Errorf("next pass due at %s, want none: the job has its maximum size", due)
	}
}

// TestCapacityForGrowthIsKept from other queues until the pods of the jobs that make room for it are gone.
func TestCapacityForGrowthIsKept(t *testing.T) {
	s := newScene(t, Options{}, queueOf("q", "lab", 4), queueOf("r", "lab", 0), localOf("q"), localOf("r"), between("low", 2, 2, 0, 0))
	s.want("a job of higher priority arrives", s.happens(between("high", 2, 4, 1, 1)), "admit high in q, 2 of 4 main", "evict low for high: in queue")
	s.want("a job arrives that would borrow", s.happens(job("borrower", "r", 2, 1, 9, 2)), "borrower waits: WaitingForQuota")
	s.want("the pods of the other are gone", s.happens(s.stopped("low")), "resize high from 2 to 4", "low waits: WaitingForQuota")
}

// TestPlannedGrowthIsGivenUp if the job may not grow any more: the one that was stopped for it starts again.
func TestPlannedGrowthIsGivenUp(t *testing.T) {
	other, stopped := localOf("q"), localOf("q")
	other.Key.Name, stopped.Stopped = "other", true
	low := between("low", 2, 2, 0, 0)
	low.Queue = "other"
	s := newScene(t, Options{}, queueOf("q", "", 4), localOf("q"), other, low)
	s.want("a job of higher priority arrives", s.happens(between("high", 2, 4, 1, 1)), "admit high in q, 2 of 4 main", "evict low for high: in queue")
	s.want("its LocalQueue is stopped", s.happens(stopped))
	s.want("the pods of the other are gone", s.happens(s.stopped("low")), "admit low in q")
}

// TestPlacesFollowTheSize: when a job shrinks, remaining ranks keep their places and the last ones are removed.
func TestPlacesFollowTheSize(t *testing.T) {
	whole := between("large", 2, 4, 0, 0)
	whole.PodSets[0].PerPod["cpu"] = 4
	s := cluster(t, whole)
	s.wantPlaces("large", "a1:1", "a2:1", "b1:1", "b2:1")
	ranks := s.engine.Holds(Key{Namespace: "ns", Name: "large"}).PodSets[0].Places
	for n, at := range ranks {
		s.happens(pod("large", n, at.Node, 4))
	}
	last := ranks[3].Node
	s.want("another workload arrives", s.happens(job("one", "q", 1, 4, 0, 1)), "resize large from 4 to 3 for one", "one waits: WaitingForPreemptedWorkloads")
	s.want("its quota is released and its pod remains", s.happens(s.shrunk("large")))
	s.want("the last pod is gone", s.happens(podGone("large", 3)), "admit one in q")
	s.wantPlaces("one", last+":1")
	s.want("the other job ends", s.happens(gone("one")), "resize large from 3 to 4")
	if got := s.engine.Holds(Key{Namespace: "ns", Name: "large"}).PodSets[0].Places; !slices.Equal(got, ranks) {
		t.Errorf("places = %v, want %v as before", got, ranks)
	}
}

// TestGrowthStaysInTheRequiredDomain: a job grows only in the rack of its other pods, whatever is free elsewhere.
func TestGrowthStaysInTheRequiredDomain(t *testing.T) {
	s := cluster(t, job("other", "q", 1, 3, 0, 0))
	w := between("large", 2, 5, 0, 1)
	w.PodSets[0].PerPod["cpu"], w.PodSets[0].Topology = 2, &flavor.TopologyRequest{Level: rack, Mandatory: true}
	s.happens(w)
	s.wantSizes("the job has a rack", []string{"large"}, 4)
	s.happens(gone("other"))
	s.wantSizes("another rack is free", []string{"large"}, 4)
}

// TestGrowthStaysInItsRackIfNamesRepeat: racks of the same name in different blocks are different racks.
func TestGrowthStaysInItsRackIfNamesRepeat(t *testing.T) {
	const block = "example.com/block"
	in := func(block_, name string, cpu int64) NodeSet {
		n := node(name, "r1", cpu)
		n.Labels[block] = block_
		return n
	}
	s := newScene(t, Options{}, FlavorSet{Flavor{Name: "default", Topology: "blocks"}},
		TopologySet{place.Topology{Name: "blocks", Levels: []string{block, rack, place.Hostname}}},
		queueOf("q", "", 1000), localOf("q"), in("x", "a1", 4), in("y", "b1", 8), job("other", "q", 1, 8, 0, 0))
	w := between("large", 2, 4, 0, 1)
	w.PodSets[0].PerPod["cpu"], w.PodSets[0].Topology = 2, &flavor.TopologyRequest{Level: rack, Mandatory: true}
	s.happens(w)
	s.wantSizes("the job has the rack of one block", []string{"large"}, 2)
	s.happens(gone("other"))
	s.wantSizes("the rack of the other block is free", []string{"large"}, 2)
	s.happens(in("x", "a2", 2))
	s.wantSizes("its own rack has another node", []string{"large"}, 3)
	s.wantPlaces("large", "a1:2", "a2:1")
}

// TestQuotaThatNodesRefuseOneJobGoesToTheNext: a job that has quota to grow but no node takes none of it from the others,
// even if it has precedence.
func TestQuotaThatNodesRefuseOneJobGoesToTheNext(t *testing.T) {
	for _, priority := range []int32{0, 1} {
		s := newScene(t, Options{}, slices.Concat(onNodes, []Event{queueOf("q", "", 9), localOf("q"), node("a1", "a", 4), node("b1", "b", 4)})...)
		first := within(between("first", 1, 3, priority, 0))
		first.PodSets[0].PerPod["cpu"] = 4
		s.happens(first)
		s.happens(within(job("other", "q", 1, 3, 0, 1)))
		s.happens(within(between("second", 1, 4, 0, 2)))
		s.wantSizes("both nodes are full", []string{"first", "second"}, 1, 1)
		s.happens(gone("other"))
		s.wantSizes("one node has capacity, for pods of the second job only", []string{"first", "second"}, 1, 4)
	}
}

// TestCapacityOfNodesIsSharedAsQuotaIs: jobs of equal priority that nodes limit, not quota, come to equal sizes.
func TestCapacityOfNodesIsSharedAsQuotaIs(t *testing.T) {
	for most, want := range map[int32][]int32{9: {4, 4, 4}, 3: {3, 3, 3}} {
		s := newScene(t, Options{}, slices.Concat(onNodes, []Event{queueOf("q", "", 1000), localOf("q"), node("a1", "a", 6), node("b1", "b", 6), job("other", "q", 3, 3, 0, 0)})...)
		names := []string{"first", "second", "third"}
		for n, name := range names {
			s.happens(between(name, 1, most, 0, n+1))
		}
		s.wantSizes("nodes are full", names, 1, 1, 1)
		s.happens(gone("other"))
		s.wantSizes("nodes have capacity", names, want...)
	}
}

// TestLowerPrioritiesGiveWayToAllThatGrow: each of two jobs could use the node of one of lower priority, and both use two.
func TestLowerPrioritiesGiveWayToAllThatGrow(t *testing.T) {
	s := newScene(t, Options{}, slices.Concat(onNodes, []Event{queueOf("q", "", 1000), localOf("q"), node("a1", "a", 4), node("a2", "a", 4),
		between("low1", 4, 4, 0, 0), between("low2", 4, 4, 0, 1)})...)
	for n, name := range []string{"high1", "high2"} { // one pod each at first
		high := between(name, 1, 5, 1, n+2)
		high.PodSets[0].Wanted = 1
		s.want("a node and a job arrive", s.happens(node("b"+name, "b", 1), high), "admit "+name+" in q, 1 of 5 main")
	}
	s.want("both want more", s.happens(s.wants("high1", 0), s.wants("high2", 0)), "evict low1 for high1: in queue", "evict low2 for high1: in queue")
	s.wantSizes("their pods are gone", []string{"high1", "high2", "low1", "low2"}, 5, 5, 0, 0)
}

// TestElasticJobsKeepTheirSizesAfterARestart: a new engine with the same state decides nothing.
func TestElasticJobsKeepTheirSizesAfterARestart(t *testing.T) {
	s := newScene(t, Options{}, queueOf("q", "", 5), localOf("q"), between("job1", 2, 4, 0, 0))
	s.want("another workload arrives", s.happens(between("job2", 2, 4, 0, 1)), "resize job1 from 4 to 3 for job2", "job2 waits: WaitingForPreemptedWorkloads")
	again := newScene(t, Options{}, queueOf("q", "", 5), localOf("q"))
	job1, job2 := s.jobs["job1"], s.jobs["job2"]
	again.want("a new engine gets the same state", again.happens(job1, job2))
	again.want("the surplus pods are gone", again.happens(again.shrunk("job1")), "admit job2 in q, 2 of 4 main")
}

// TestInadmissibleWorkloadDoesNotGrow: a job whose LocalQueue does not admit, or that is deactivated, grows only once
// that is over.
func TestInadmissibleWorkloadDoesNotGrow(t *testing.T) {
	stopped := localOf("q")
	stopped.Stopped = true
	elsewhere := localOf("q")
	elsewhere.ClusterQueue = "p"
	for name, tc := range map[string]struct{ hold, release func(s *scene) []Event }{
		"its LocalQueue is stopped": {
			func(*scene) []Event { return []Event{stopped} }, func(*scene) []Event { return []Event{localOf("q")} }},
		"its LocalQueue points elsewhere": {
			func(*scene) []Event { return []Event{elsewhere} }, func(*scene) []Event { return []Event{localOf("q")} }},
		"its LocalQueue is deleted": {
			func(*scene) []Event { return []Event{LocalQueueDeleted{localOf("q").Key}} }, func(*scene) []Event { return []Event{localOf("q")} }},
		"it is deactivated": {
			func(s *scene) []Event { return []Event{s.changed("a", func(w *Workload) { w.Inactive = true })} },
			func(s *scene) []Event { return []Event{s.changed("a", func(w *Workload) { w.Inactive = false })} }},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, Options{}, queueOf("q", "", 4), queueOf("p", "", 0), localOf("q"), job("b", "q", 2, 1, 0, 0))
			s.want("an elastic job arrives and half the quota is free", s.happens(between("a", 1, 4, 0, 1)), "admit a in q, 2 of 4 main")
			s.want("the job becomes inadmissible", s.happens(tc.hold(s)...))
			s.want("the other half is released", s.happens(gone("b")))
			s.want("the job is admissible again", s.happens(tc.release(s)...), "resize a from 2 to 4")
		})
	}
}

// TestGrowthIsRetriedIfNotWritten: a growth whose write met a conflict is decided again although nothing else happens.
func TestGrowthIsRetriedIfNotWritten(t *testing.T) {
	for name, policy := range map[string]elastic.Policy{"at once": {}, "once it has rested": {GrowAfter: 30 * time.Second}} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, Options{Elastic: policy}, queueOf("q", "", 4), localOf("q"), job("rigid", "q", 2, 1, 0, 0), between("large", 1, 4, 0, 1))
			s.now = epoch.Add(time.Hour)
			s.engine.Apply(gone("rigid"))
			grows := decideAll(s.engine, s.now)
			if len(grows) != 1 || grows[0].Resize == nil {
				t.Fatalf("got decisions %v, want growth", grows)
			}
			s.want("the write fails", s.happens(Failed{Key: grows[0].Key, UID: grows[0].UID, Serial: grows[0].Serial}), "resize large from 2 to 4")
		})
	}
}

// TestGrowthAwaitsThePodsOnItsNodes: a job that grows at the expense of lower priorities waits until their pods have left
// the nodes, even if it had quota for it all along.
func TestGrowthAwaitsThePodsOnItsNodes(t *testing.T) {
	sized := func(name string, fewest, most, priority int32) WorkloadSet {
		w := between(name, fewest, most, priority, 0)
		w.PodSets[0].PerPod["cpu"] = 4
		return w
	}
	bound := func(s *scene, name string) {
		for n, at := range s.engine.Holds(Key{Namespace: "ns", Name: name}).PodSets[0].Places {
			s.happens(pod(name, n, at.Node, 4))
		}
	}
	two := slices.Concat(onNodes, []Event{queueOf("q", "", 1000), localOf("q"), node("a1", "a", 4), node("a2", "a", 4)})
	t.Run("a job stops", func(t *testing.T) {
		s := newScene(t, Options{}, append(two, sized("low", 1, 1, 0))...)
		bound(s, "low")
		s.want("a job of higher priority", s.happens(sized("high", 1, 2, 1)), "admit high in q, 1 of 2 main", "evict low for high: in queue")
		bound(s, "high")
		s.want("its quota is released and its pod remains", s.happens(s.stopped("low")), "low waits: WaitingForQuota")
		s.want("its pod is gone", s.happens(podGone("low", 0)), "resize high from 1 to 2", "low waits: TopologyPlacementFailed")
	})
	t.Run("a job shrinks", func(t *testing.T) {
		s := newScene(t, Options{}, append(two, node("a3", "a", 4), sized("low", 1, 2, 0))...)
		bound(s, "low")
		s.want("a job of higher priority", s.happens(sized("high", 1, 2, 1)), "admit high in q, 1 of 2 main", "resize low from 2 to 1 for high")
		bound(s, "high")
		s.want("its quota is released and its pod remains", s.happens(s.shrunk("low")))
		s.want("its pod is gone", s.happens(podGone("low", 1)), "resize high from 1 to 2")
	})
}

// TestNoneGrowsIntoWhatAHigherPriorityWillHave: a job that rests after a resize, because its node failed for some seconds,
// finds the node free when it may grow: one of lower priority, which would have to leave it again, does not get it
// meanwhile. It gets what is more than that.
func TestNoneGrowsIntoWhatAHigherPriorityWillHave(t *testing.T) {
	both := []string{"high", "low"}
	s := newScene(t, Options{Elastic: elastic.Policy{GrowAfter: 30 * time.Second}}, slices.Concat(onNodes, []Event{queueOf("q", "", 1000), localOf("q"),
		node("a1", "a", 2), node("a2", "a", 2), node("b1", "b", 1), within(between("high", 1, 4, 1, 0))})...)
	s.happens(between("low", 1, 9, 0, 1))
	s.wantSizes("nodes are full", both, 4, 1)
	s.now = s.now.Add(time.Minute)
	s.happens(failed(node("a2", "a", 2)))
	s.wantSizes("a node fails", both, 2, 1)
	s.now = s.now.Add(time.Second)
	s.want("the node is ready again, with capacity for one more", s.happens(node("a2", "a", 3)), "resize low from 1 to 2")
	s.now = s.now.Add(30 * time.Second)
	s.want("the job has rested", s.happens(), "resize high from 2 to 4")
}

// TestGrowthIsWorthItsCost also where nodes hold fewer pods than there is quota for.
func TestGrowthIsWorthItsCost(t *testing.T) {
	s := newScene(t, Options{Elastic: elastic.Policy{ResizeCost: 30 * time.Second}}, slices.Concat(onNodes, []Event{queueOf("q", "", 1000), localOf("q"),
		node("a1", "a", 10), between("grows", 2, 20, 0, 0)})...)
	s.now = s.now.Add(2 * time.Minute)
	s.want("there is capacity for one more pod", s.happens(node("a2", "a", 1)))
	s.now = s.engine.Due()
	s.want("it is worth the cost", s.happens(), "resize grows from 10 to 11")
	if ran := s.now.Sub(epoch); ran < 6*time.Minute || ran > 7*time.Minute { // 30 s of work are a 13th of that, as the 11th pod is
		t.Errorf("it grew after %s, want between six and seven minutes", ran)
	}
}

// TestAQueuesOwnQuotaIsForItsOwnGrowth: a job of another queue that grows leaves what the queue's own jobs will use soon,
// whichever queue comes first by name.
func TestAQueuesOwnQuotaIsForItsOwnGrowth(t *testing.T) {
	for _, names := range [][]string{{"p", "q"}, {"q", "p"}} {
		s := newScene(t, Options{Elastic: elastic.Policy{GrowAfter: 30 * time.Second}}, queueOf(names[0], "lab", 6), queueOf(names[1], "lab", 3), localOf("p"), localOf("q"),
			job("rigid", names[0], 4, 1, 0, 0), job("before", names[0], 2, 1, 0, 0))
		own, other := between("own", 2, 5, 0, 1), between("other", 3, 9, 1, 2)
		own.Queue, other.Queue = names[0], names[1]
		s.happens(other)
		s.now = s.now.Add(29 * time.Second)
		s.happens(gone("before"), own)
		s.wantSizes("all is in use", []string{"own", "other"}, 2, 3)
		s.now = s.now.Add(time.Second)
		s.want("four are free, and the owner's job rests", s.happens(gone("rigid")), "resize other from 3 to 4")
		s.now = s.now.Add(30 * time.Second)
		s.want("the owner's job has rested", s.happens(), "resize own from 2 to 5")
	}
}

// TestHigherPrioritiesGrowFirstAcrossQueues, whichever queue comes first by name.
func TestHigherPrioritiesGrowFirstAcrossQueues(t *testing.T) {
	for _, names := range [][]string{{"p", "q"}, {"q", "p"}} {
		s := newScene(t, Options{}, queueOf("p", "lab", 2), queueOf("q", "lab", 2), queueOf("r", "lab", 4), localOf("p"), localOf("q"), localOf("r"), job("rigid", "r", 4, 1, 0, 0))
		low, high := between("low", 2, 6, 0, 1), between("high", 2, 6, 1, 2)
		low.Queue, high.Queue = names[0], names[1]
		s.happens(low, high)
		s.wantSizes("all is in use", []string{"low", "high"}, 2, 2)
		s.happens(gone("rigid"))
		s.wantSizes("what another queue lends is free", []string{"low", "high"}, 2, 6)
	}
}

// TestGrowthAtTheCostOfOthersLeavesWhatIsKept: a job that takes what one of lower priority has plans nothing of what another
// queue keeps for its own workload.
func TestGrowthAtTheCostOfOthersLeavesWhatIsKept(t *testing.T) {
	s := newScene(t, Options{Elastic: elastic.Policy{GrowAfter: 30 * time.Second}}, queueOf("p", "lab", 4), queueOf("q", "lab", 4), localOf("p"), localOf("q"), job("rigid", "q", 2, 1, 0, 0))
	low, high := between("low", 2, 2, 0, 1), between("high", 2, 6, 1, 2)
	low.Queue, high.Queue = "p", "p"
	s.happens(low)
	s.happens(high, job("large", "q", 4, 1, 0, 3))
	s.wantSizes("the job has what the other had", []string{"low", "high"}, 0, 4)
	s.want("the rest of the other queue's quota is released", s.happens(gone("rigid")), "admit large in q")
}
