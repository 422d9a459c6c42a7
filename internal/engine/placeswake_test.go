package engine

import (
	"slices"
	"testing"

	"github.com/musterhq/muster/internal/engine/place"
)

// TestWorkloadThatNoNodeCouldHoldAnyMoreIsReevaluated: one that waits for capacity on present nodes is evaluated
// again once none of them could ever hold it.
func TestWorkloadThatNoNodeCouldHoldAnyMoreIsReevaluated(t *testing.T) {
	onDemand, byResource := queueOf("q", "", 1000), queueOf("q", "", 1000)
	onDemand.OnDemand, byResource.Strategy = true, ByResource
	daemon := pod("", 1, "a1", 1)
	daemon.Resident = true
	for name, tc := range map[string]struct {
		queue ClusterQueueSet
		event Event
		want  string
	}{
		"new nodes come for it, and its own is smaller": {onDemand, node("a1", "a", 3), "admit large in q"},
		"its own is gone":              {onDemand, NodeDeleted{"a1"}, "admit large in q"},
		"its own failed":               {onDemand, failed(node("a1", "a", 4)), "admit large in q"},
		"its own has a pod that stays": {onDemand, daemon, "admit large in q"},
		"it holds others back, and its own node is smaller": {byResource, node("a1", "a", 3), "admit small in q"},
		"it holds others back, and a service comes to stay": {byResource, daemon, "admit small in q"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, Options{}, slices.Concat(onNodes, []Event{tc.queue, localOf("q"), node("a1", "a", 4), node("b1", "b", 1), pod("", 0, "a1", 1)})...)
			s.happens(job("large", "q", 1, 4, 1, 0))
			if tc.queue.Strategy == ByResource {
				s.want("one comes behind it", s.happens(job("small", "q", 1, 1, 0, 1)), "small waits: WaitingForQuota")
			}
			s.want("that", s.happens(tc.event), tc.want)
		})
	}
}

// TestReducedOvercommitOfANodeWakesPreemptors: nothing is free on it yet, but would be once another workload is gone.
func TestReducedOvercommitOfANodeWakesPreemptors(t *testing.T) {
	s := newScene(t, Options{}, slices.Concat(onNodes, []Event{evicting(queueOf("q", "", 1000), lower), localOf("q"), node("a1", "a", 4)})...)
	s.happens(job("low", "q", 1, 2, 0, 0), pod("low", 0, "a1", 2))
	s.want("both come", append(s.happens(pod("low", 0, "a1", 2), pod("", 0, "a1", 4)), s.happens(job("high", "q", 1, 2, 1, 1))...), "high waits: TopologyPlacementFailed")
	s.want("the other shrinks", s.happens(pod("", 0, "a1", 2)), "evict low for high: in queue", "high waits: WaitingForPreemptedWorkloads")
}

// TestWorkloadThatNoNodeCouldHoldBlocksNone: whether or not it is short of quota as well.
func TestWorkloadThatNoNodeCouldHoldBlocksNone(t *testing.T) {
	q := queueOf("q", "", 8)
	q.Strategy = ByResource
	s := newScene(t, Options{}, slices.Concat(onNodes, []Event{q, localOf("q"), node("a1", "a", 4), node("b1", "b", 4)})...)
	s.happens(job("runs", "q", 1, 3, 0, 0))
	s.happens(job("large", "q", 1, 8, 1, 1))
	s.want("another comes", s.happens(job("small", "q", 1, 1, 0, 2)), "admit small in q")
	s.want("the others end", s.happens(gone("runs"), gone("small")), "large waits: TopologyPlacementFailed")
	s.want("a node comes that could hold the first", s.happens(node("c1", "c", 8)), "admit large in q")
}

// TestEvictionFromLostNodesIsRetriedIfNotWritten: no later event of the nodes triggers it.
func TestEvictionFromLostNodesIsRetriedIfNotWritten(t *testing.T) {
	s := cluster(t)
	s.happens(job("gang", "q", 4, 4, 0, 0))
	s.engine.Apply(NodeDeleted{"a1"})
	if got := decideAll(s.engine, s.now); len(got) != 1 || got[0].Evict == nil {
		t.Fatalf("decided %+v", got)
	}
	s.engine.Apply(Failed{Key: s.jobs["gang"].Key, UID: s.jobs["gang"].UID})
	s.want("after the write failed", s.happens(), "evict gang: NodeFailures")
}

// TestHeadBlocksForWhatItLacksAtPresent: what nodes lacked no longer matters once the head waits for quota.
func TestHeadBlocksForWhatItLacksAtPresent(t *testing.T) {
	q, full := queueOf("q", "lab", 0), node("a1", "a", 4)
	q.Strategy, full.Allocatable[place.Pods] = ByResource, 1
	s := newScene(t, Options{}, slices.Concat(onNodes, []Event{q, queueOf("r", "lab", 8), localOf("q"), localOf("r"), full, node("b1", "b", 1), pod("", 0, "a1", 0)})...)
	s.want("nodes have no capacity for the head", s.happens(job("head", "q", 1, 4, 1, 0)), "head waits: TopologyPlacementFailed")
	s.want("one asks for a pod's place alone", s.happens(job("small", "q", 1, 0, 0, 1)), "small waits: WaitingForQuota")
	other := job("other", "r", 1, 5, 0, 2)
	other.Admission = &Admission{ClusterQueue: "r", PodSets: []Assignment{{PodSet: "main", Count: 1, Flavors: map[string]string{"cpu": "default"}, Usage: map[string]int64{"cpu": 5}}}}
	s.want("others take the quota", s.happens(other), "admit small in q")
}
