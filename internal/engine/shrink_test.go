package engine

import (
	"slices"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/engine/elastic"
	"github.com/musterhq/muster/internal/engine/preempt"
)

// lent returns a scene with the queues q and p of one cohort, with equal quota. q reclaims by the rule, and an elastic
// job of p, with a minimum of two pods, has grown into what q lends.
func lent(t *testing.T, reclaims preempt.Rule, options Options, more ...Event) *scene {
	q := queueOf("q", "lab", 4)
	q.Preemption.Reclaim = reclaims
	borrower := between("borrower", 2, 8, 0, 0)
	borrower.Queue = "p"
	events := append([]Event{q, queueOf("p", "lab", 4), localOf("q"), localOf("p"), borrower}, more...)
	return newScene(t, options, events...)
}

// TestReclaimingShrinksElasticJobsFirst: an elastic job of another queue gives back borrowed quota above its minimum,
// as much as is needed, and is not evicted.
func TestReclaimingShrinksElasticJobsFirst(t *testing.T) {
	for name, options := range map[string]Options{
		"by quota":  {},
		"by shares": {FairSharing: &FairSharing{Strategies: []preempt.Strategy{preempt.LessThanOrEqualToFinalShare, preempt.LessThanInitialShare}}},
	} {
		t.Run(name, func(t *testing.T) {
			s := lent(t, preempt.Any, options)
			s.wantSizes("only job", []string{"borrower"}, 8)
			s.want("a rigid job arrives", s.happens(job("rigid", "q", 3, 1, 0, 1)), "resize borrower from 8 to 5 for rigid", "rigid waits: WaitingForPreemptedWorkloads")
			s.want("its surplus pods are gone", s.happens(s.shrunk("borrower")), "admit rigid in q")
			s.want("one more rigid job arrives", s.happens(job("last", "q", 1, 1, 0, 2)), "resize borrower from 5 to 4 for last", "last waits: WaitingForPreemptedWorkloads")
			s.want("its surplus pods are gone", s.happens(s.shrunk("borrower")), "admit last in q")
			s.want("a job arrives that would need the borrower's own quota", s.happens(job("greedy", "q", 1, 1, 0, 3)), "greedy waits: WaitingForQuota")
			s.want("quota is released", s.happens(gone("greedy"), gone("rigid")), "resize borrower from 4 to 7")
		})
	}
}

// TestReclaimingStopsOnlyTheNecessary: other jobs are evicted only for what elastic ones cannot spare, and these then
// give back only what is needed.
func TestReclaimingStopsOnlyTheNecessary(t *testing.T) {
	rigid := job("lodger", "p", 4, 1, 0, 1)
	elastic := between("borrower", 2, 4, 0, 0)
	elastic.Queue = "p"
	begin := func(t *testing.T) *scene {
		q := queueOf("q", "lab", 8)
		q.Preemption.Reclaim = preempt.Any
		s := newScene(t, Options{}, q, queueOf("p", "lab", 0), localOf("q"), localOf("p"), elastic)
		s.now = s.now.Add(time.Minute)
		s.happens(rigid)
		s.wantSizes("both borrow everything", []string{"borrower", "lodger"}, 4, 4)
		return s
	}
	t.Run("the elastic job can spare enough", func(t *testing.T) {
		s := begin(t)
		s.want("another workload arrives", s.happens(job("owner", "q", 2, 1, 0, 2)), "resize borrower from 4 to 2 for owner", "owner waits: WaitingForPreemptedWorkloads")
	})
	t.Run("one job is evicted and the elastic one is not needed", func(t *testing.T) {
		s := begin(t)
		s.want("another workload arrives", s.happens(job("owner", "q", 4, 1, 0, 2)), "evict lodger for owner: reclaimed", "owner waits: WaitingForPreemptedWorkloads")
	})
	t.Run("one job is evicted and the elastic one shrinks", func(t *testing.T) {
		s := begin(t)
		s.want("another workload arrives", s.happens(job("owner", "q", 5, 1, 0, 2)), "evict lodger for owner: reclaimed",
			"resize borrower from 4 to 3 for owner", "owner waits: WaitingForPreemptedWorkloads")
	})
	t.Run("all jobs are evicted", func(t *testing.T) {
		s := begin(t)
		s.want("another workload arrives", s.happens(job("owner", "q", 8, 1, 0, 2)), "evict lodger for owner: reclaimed",
			"evict borrower for owner: reclaimed", "owner waits: WaitingForPreemptedWorkloads")
	})
}

// TestReclaimingKeepsToTheRules: a job that the rules do not allow to evict does not shrink either.
func TestReclaimingKeepsToTheRules(t *testing.T) {
	s := lent(t, preempt.LowerPriority, Options{})
	s.want("a job of equal priority arrives", s.happens(job("equal", "q", 3, 1, 0, 1)), "equal waits: WaitingForQuota")
	s.want("a job of higher priority arrives", s.happens(job("higher", "q", 3, 1, 1, 2)), "resize borrower from 8 to 5 for higher", "higher waits: WaitingForPreemptedWorkloads")
}

// TestLowerPriorityIsReclaimedBeforeAHigherOneShrinks: a job does not shrink for a claim that a job of lower priority
// can satisfy; it would grow back into it at once.
func TestLowerPriorityIsReclaimedBeforeAHigherOneShrinks(t *testing.T) {
	q := queueOf("q", "lab", 8)
	q.Preemption.Reclaim = preempt.Any
	high, low := between("high", 2, 4, 1, 0), between("low", 2, 4, 0, 1)
	high.Queue, low.Queue = "p", "p"
	s := newScene(t, Options{}, q, queueOf("p", "lab", 0), localOf("q"), localOf("p"), high, low)
	s.wantSizes("both borrow everything", []string{"high", "low"}, 4, 4)
	s.want("another workload arrives", s.happens(job("owner", "q", 3, 1, 0, 2)), "evict low for owner: reclaimed", "owner waits: WaitingForPreemptedWorkloads")
	s.wantSizes("low was evicted", []string{"high", "low", "owner"}, 4, 0, 3)
}

// TestReclaimingOnNodes: the pods removed by a shrink are on nodes that the preemptor can use.
func TestReclaimingOnNodes(t *testing.T) {
	whole := between("borrower", 2, 4, 0, 0)
	whole.Queue, whole.PodSets[0].PerPod["cpu"] = "p", 4
	q := queueOf("q", "lab", 16)
	q.Preemption.Reclaim = preempt.Any
	s := cluster(t, q, queueOf("p", "lab", 0), localOf("p"), whole)
	s.wantSizes("only job", []string{"borrower"}, 4)
	for n, at := range s.engine.Holds(Key{Namespace: "ns", Name: "borrower"}).PodSets[0].Places {
		s.happens(pod("borrower", n, at.Node, 4))
	}
	s.want("another workload arrives", s.happens(job("owner", "q", 1, 4, 0, 1)), "resize borrower from 4 to 3 for owner", "owner waits: WaitingForPreemptedWorkloads")
	s.want("its quota is released and its pod remains", s.happens(s.shrunk("borrower")))
	s.want("the last pod is gone", s.happens(podGone("borrower", 3)), "admit owner in q")
}

// TestShrinkingOnNodesFreesOneNode: quota is not short, and only the last of the removed pods lets the new one fit.
func TestShrinkingOnNodesFreesOneNode(t *testing.T) {
	s := cluster(t)
	s.want("an elastic job fills all nodes", s.happens(between("a", 1, 16, 0, 0)), "admit a in q")
	s.want("one arrives that needs most of a node", s.happens(job("next", "q", 1, 3, 0, 1)), "resize a from 16 to 13 for next", "next waits: WaitingForPreemptedWorkloads")
	s.want("one arrives that no node could hold", s.happens(job("large", "q", 1, 5, 0, 2)), "large waits: ExceedsNodes")
}

// TestLostNodeShrinksAnElasticGang: an elastic gang that loses a node continues with the remaining pods, down to its
// minimum, and grows when there is capacity again. Remaining ranks keep their places.
func TestLostNodeShrinksAnElasticGang(t *testing.T) {
	whole := between("gang", 3, 4, 0, 0)
	whole.PodSets[0].PerPod["cpu"] = 4
	s := cluster(t, whole)
	s.wantPlaces("gang", "a1:1", "a2:1", "b1:1", "b2:1")
	for n, at := range s.engine.Holds(Key{Namespace: "ns", Name: "gang"}).PodSets[0].Places {
		s.happens(pod("gang", n, at.Node, 4))
	}
	s.want("a node is lost", s.happens(NodeDeleted{"a2"}), shrinksWithout("4 to 3", "a2"))
	s.wantRanks("gang", "a1", "b2", "b1") // rank 1 got the place of rank 3
	s.happens(s.shrunk("gang"), podGone("gang", 1), podGone("gang", 3))
	s.want("a node is added", s.happens(node("a9", "a", 4)), "resize gang from 3 to 4")
	s.wantRanks("gang", "a1", "b2", "b1", "a9")
	s.happens(pod("gang", 1, "b2", 4), pod("gang", 3, "a9", 4))
	s.want("a second node is lost", s.happens(NodeDeleted{"b1"}), shrinksWithout("4 to 3", "b1"))
	s.happens(s.shrunk("gang"))
	s.want("a third node is lost", s.happens(NodeDeleted{"a1"}), "evict gang: NodeFailures")
}

// TestLostNodesShrinkAGangOnce: a gang that loses two nodes at once has one new size, on nodes that exist.
func TestLostNodesShrinkAGangOnce(t *testing.T) {
	whole := between("gang", 1, 4, 0, 0)
	whole.PodSets[0].PerPod["cpu"] = 4
	s := cluster(t, whole)
	for n, at := range s.engine.Holds(Key{Namespace: "ns", Name: "gang"}).PodSets[0].Places {
		s.happens(pod("gang", n, at.Node, 4))
	}
	s.want("two nodes are lost", s.happens(NodeDeleted{"a2"}, NodeDeleted{"b1"}),
		"resize gang from 4 to 2: its places on nodes a2, b1 are no longer valid, and there is no other capacity close enough for its pods")
}

// wantRanks compares the nodes of the ranks of a job.
func (s *scene) wantRanks(name string, want ...string) {
	s.Helper()
	var got []string
	for _, p := range s.engine.Holds(Key{Namespace: "ns", Name: name}).PodSets[0].Places {
		got = append(got, slices.Repeat([]string{p.Node}, int(p.Count))...)
	}
	if !slices.Equal(got, want) {
		s.Errorf("ranks of %s are on %q, want %q", name, got, want)
	}
}

// shrinksWithout returns the decision by which the gang shrinks when it loses a node.
func shrinksWithout(sizes, node string) string {
	return "resize gang from " + sizes + ": its places on node " + node + " are no longer valid, and there is no other capacity close enough for its pods"
}

// TestLostPlaceIsReplacedBeforeAGangShrinks: a gang shrinks only by the places that cannot be replaced elsewhere.
func TestLostPlaceIsReplacedBeforeAGangShrinks(t *testing.T) {
	whole := between("gang", 1, 3, 0, 0)
	whole.PodSets[0].PerPod["cpu"] = 4
	s := cluster(t, whole)
	s.wantSizes("only job", []string{"gang"}, 3)
	for n, at := range s.engine.Holds(Key{Namespace: "ns", Name: "gang"}).PodSets[0].Places {
		s.happens(pod("gang", n, at.Node, 4))
	}
	had := s.engine.Holds(Key{Namespace: "ns", Name: "gang"}).PodSets[0].Places
	s.happens(NodeDeleted{had[0].Node}, NodeDeleted{had[1].Node})
	s.wantSizes("two of four nodes are lost", []string{"gang"}, 2)
}

// TestLowerPriorityIsNotStartedOnlyToBeStopped: capacity into which a job of higher priority will grow is not given to
// one of lower priority meanwhile, elastic or not; what the former cannot use is.
func TestLowerPriorityIsNotStartedOnlyToBeStopped(t *testing.T) {
	s := newScene(t, Options{Elastic: elastic.Policy{GrowAfter: 30 * time.Second}}, queueOf("q", "", 5), localOf("q"), job("other", "q", 3, 1, 1, 0))
	s.happens(between("high", 2, 4, 1, 1))
	s.wantSizes("high has its minimum", []string{"high"}, 2)
	s.want("jobs of lower priority arrive", s.happens(between("low", 1, 2, 0, 2), job("rigid", "q", 2, 1, 0, 3)), "low waits: WaitingForQuota", "rigid waits: WaitingForQuota")
	s.want("three cpu are released, two of them for high", s.happens(gone("other")), "admit low in q, 1 of 2 main")
	s.now = s.now.Add(30 * time.Second)
	s.want("the damping time of high has passed", s.happens(), "resize high from 2 to 4")
	s.want("high ends", s.happens(gone("high")), "admit rigid in q", "resize low from 1 to 2")
}

// TestNoneShrinksForWhatIsAboutToBeFree: what a workload that stops will release is enough.
func TestNoneShrinksForWhatIsAboutToBeFree(t *testing.T) {
	s := newScene(t, Options{}, queueOf("q", "", 6), localOf("q"), between("large", 1, 4, 0, 0), job("stops", "q", 2, 1, 0, 1))
	s.want("a job is stopped", s.happens(s.changed("stops", func(w *Workload) { w.Inactive, w.Evicted = true, true })))
	s.want("another arrives", s.happens(job("next", "q", 2, 1, 0, 2)), "next waits: WaitingForPreemptedWorkloads")
	s.want("the pods of the first are gone", s.happens(gone("stops")), "admit next in q")
}

// TestCapacityNotWorthAResizeIsNotKept: others use free capacity while growth would cost more than it gains.
func TestCapacityNotWorthAResizeIsNotKept(t *testing.T) {
	flat := between("flat", 2, 4, 1, 1)
	flat.PodSets[0].Elastic = 0.0001
	s := newScene(t, Options{Elastic: elastic.Policy{ResizeCost: 30 * time.Second}}, queueOf("q", "", 4), localOf("q"), job("other", "q", 2, 1, 1, 0))
	s.happens(flat)
	s.happens(gone("other"))
	s.want("a workload of lower priority arrives", s.happens(between("low", 1, 2, 0, 2)), "admit low in q")
	s.now = s.now.Add(time.Hour)
	s.want("an hour later", s.happens())
}

// TestAShrinkAfterARepairKeepsTheRunningPod: the first of two pods on a node fails, and the node is cordoned. The place
// that moves is the first one's: a job that shrinks gives up its last index, and must not have to give up the first
// because its place is not where it runs.
func TestAShrinkAfterARepairKeepsTheRunningPod(t *testing.T) {
	s := newScene(t, Options{}, slices.Concat(onNodes, []Event{queueOf("q", "", 2), localOf("q"), node("a1", "a", 2), between("gang", 1, 2, 0, 0)})...)
	ranked := func(n int32, on string) PodBound {
		p := pod("gang", int(n), on, 1)
		p.Rank, p.HasRank = n, true
		return p
	}
	s.happens(ranked(0, "a1"), ranked(1, "a1"), node("b1", "a", 2))
	s.want("the first pod is gone and the node cordoned", s.happens(podGone("gang", 0), cordoned(node("a1", "a", 2))), "replace gang")
	s.wantRanks("gang", "b1", "a1")
	s.happens(ranked(0, "b1"))
	s.want("another job arrives", s.happens(job("other", "q", 1, 1, 0, 1)), "resize gang from 2 to 1 for other", "other waits: WaitingForPreemptedWorkloads")
	s.wantRanks("gang", "b1")
}

// TestNoneStopsIfItsMinimumIsLeft: a job of lower priority is not stopped, only to start again at its minimum, where those
// that shrink after it release more than is still missing.
func TestNoneStopsIfItsMinimumIsLeft(t *testing.T) {
	large := func(name string, fewest, most, priority int32, second int) WorkloadSet {
		w := between(name, fewest, most, priority, second)
		w.PodSets[0].PerPod = map[string]int64{"cpu": 2}
		return w
	}
	for name, world := range map[string][]Event{
		"by quota": {queueOf("q", "", 8)},
		"on nodes": slices.Concat(onNodes, []Event{queueOf("q", "", 1000), node("a1", "a", 8)}),
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, Options{}, append(world, localOf("q"), between("low", 1, 2, -1, 0), job("other", "q", 1, 2, 0, 1), large("equal", 1, 2, 0, 2))...)
			s.want("a job arrives", s.happens(job("next", "q", 1, 3, 0, 3)), "resize equal from 2 to 1 for next", "resize low from 2 to 1 for next",
				"next waits: WaitingForPreemptedWorkloads")
			s.wantSizes("surplus pods are gone", []string{"low", "equal", "next"}, 1, 1, 1)
		})
	}
}

// TestNoneStopsForGrowthIfItsMinimumIsLeft is TestNoneStopsIfItsMinimumIsLeft for a job of higher priority that grows.
func TestNoneStopsForGrowthIfItsMinimumIsLeft(t *testing.T) {
	all := []string{"low", "middle", "high"}
	sized := func(name string, cpu int64, priority int32, second int) WorkloadSet {
		w := between(name, 1, 2, priority, second)
		w.PodSets[0].PerPod = map[string]int64{"cpu": cpu}
		return w
	}
	high := sized("high", 3, 1, 2)
	high.PodSets[0].Wanted = 1
	s := newScene(t, Options{}, queueOf("q", "", 9), localOf("q"), sized("low", 1, -1, 0), sized("middle", 2, 0, 1), high)
	s.wantSizes("quota is used up", all, 2, 2, 1)
	s.want("the job wants more", s.happens(s.wants("high", 0)), "resize low from 2 to 1 for high", "resize middle from 2 to 1 for high")
	s.wantSizes("surplus pods are gone", all, 1, 1, 2)
}
