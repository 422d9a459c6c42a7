package engine

import (
	"slices"
	"testing"

	"github.com/musterhq/muster/internal/engine/place"
)

// TestWorkloadThatNoNodeCouldHoldAnyMoreIsReevaluated: a workload that waits for capacity on present nodes is evaluated
// again once none of them could ever hold it.
func TestWorkloadThatNoNodeCouldHoldAnyMoreIsReevaluated(t *testing.T) {
	onDemand, byResource := queueOf("q", "", 1000), queueOf("q", "", 1000)
	onDemand.OnDemand, byResource.Strategy = true, ByResource
	daemon := pod("", 1, "a1", 1)
	daemon.Resident = true
	for name, tc := range map[string]struct {
		queue ClusterQueueSet
		event Event
		want  []string
	}{
		"its node is smaller and nodes are provisioned on demand": {onDemand, node("a1", "a", 3), []string{"admit large in q"}},
		"its node is deleted":                        {onDemand, NodeDeleted{"a1"}, []string{"admit large in q"}},
		"its node failed":                            {onDemand, failed(node("a1", "a", 4)), []string{"admit large in q"}},
		"its node has a pod that stays":              {onDemand, daemon, []string{"admit large in q"}},
		"it blocks others and its node is smaller":   {byResource, node("a1", "a", 3), []string{"admit small in q", "large waits: ExceedsNodes"}},
		"it blocks others and a daemon pod is added": {byResource, daemon, []string{"admit small in q", "large waits: ExceedsNodes"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, Options{}, slices.Concat(onNodes, []Event{tc.queue, localOf("q"), node("a1", "a", 4), node("b1", "b", 1), pod("", 0, "a1", 1)})...)
			s.happens(job("large", "q", 1, 4, 1, 0))
			if tc.queue.Strategy == ByResource {
				s.want("a workload behind it arrives", s.happens(job("small", "q", 1, 1, 0, 1)), "small waits: WaitingForQuota")
			}
			s.want("the event", s.happens(tc.event), tc.want...)
		})
	}
}

// TestReducedOvercommitOfANodeWakesPreemptors: nothing is free on an overcommitted node yet, but an eviction would now
// leave enough for a preemptor.
func TestReducedOvercommitOfANodeWakesPreemptors(t *testing.T) {
	s := newScene(t, Options{}, slices.Concat(onNodes, []Event{evicting(queueOf("q", "", 1000), lower), localOf("q"), node("a1", "a", 4)})...)
	s.happens(job("low", "q", 1, 2, 0, 0), pod("low", 0, "a1", 2))
	s.want("a foreign pod and the preemptor arrive", append(s.happens(pod("low", 0, "a1", 2), pod("", 0, "a1", 4)), s.happens(job("high", "q", 1, 2, 1, 1))...), "high waits: TopologyPlacementFailed")
	s.want("the other pod shrinks", s.happens(pod("", 0, "a1", 2)), "evict low for high: in queue", "high waits: WaitingForPreemptedWorkloads")
}

// TestWorkloadThatNoNodeCouldHoldBlocksNone: a head that no node could hold blocks no others, whether or not it is also
// short of quota.
func TestWorkloadThatNoNodeCouldHoldBlocksNone(t *testing.T) {
	q := queueOf("q", "", 8)
	q.Strategy = ByResource
	s := newScene(t, Options{}, slices.Concat(onNodes, []Event{q, localOf("q"), node("a1", "a", 4), node("b1", "b", 4)})...)
	s.happens(job("runs", "q", 1, 3, 0, 0))
	s.happens(job("large", "q", 1, 8, 1, 1))
	s.want("another workload arrives", s.happens(job("small", "q", 1, 1, 0, 2)), "admit small in q")
	s.want("the other jobs end", s.happens(gone("runs"), gone("small")), "large waits: ExceedsNodes")
	s.want("a node that could hold the first is added", s.happens(node("c1", "c", 8)), "admit large in q")
}

// TestEvictionFromLostNodesIsRetriedIfNotWritten: the eviction is decided again although no event of the nodes triggers
// it.
func TestEvictionFromLostNodesIsRetriedIfNotWritten(t *testing.T) {
	s := cluster(t)
	s.happens(job("gang", "q", 4, 4, 0, 0))
	s.engine.Apply(NodeDeleted{"a1"})
	if got := decideAll(s.engine, s.now); len(got) != 1 || got[0].Evict == nil {
		t.Fatalf("got decisions %+v, want an eviction", got)
	}
	s.engine.Apply(Failed{Key: s.jobs["gang"].Key, UID: s.jobs["gang"].UID})
	s.want("the write fails", s.happens(), "evict gang: NodeFailures")
}

// TestHeadBlocksForWhatItLacksAtPresent: once the head waits for quota, a former shortage on nodes blocks no others.
func TestHeadBlocksForWhatItLacksAtPresent(t *testing.T) {
	q, full := queueOf("q", "lab", 0), node("a1", "a", 4)
	q.Strategy, full.Allocatable[place.Pods] = ByResource, 1
	s := newScene(t, Options{}, slices.Concat(onNodes, []Event{q, queueOf("r", "lab", 8), localOf("q"), localOf("r"), full, node("b1", "b", 1), pod("", 0, "a1", 0)})...)
	s.want("a head arrives for which nodes have no capacity", s.happens(job("head", "q", 1, 4, 1, 0)), "head waits: TopologyPlacementFailed")
	s.want("a workload that requests only a pod slot arrives", s.happens(job("small", "q", 1, 0, 0, 1)), "small waits: WaitingForQuota")
	other := job("other", "r", 1, 5, 0, 2)
	other.Admission = &Admission{ClusterQueue: "r", PodSets: []Assignment{{PodSet: "main", Count: 1, Flavors: map[string]string{"cpu": "default"}, Usage: map[string]int64{"cpu": 5}}}}
	s.want("another workload gets the quota", s.happens(other), "admit small in q")
}
