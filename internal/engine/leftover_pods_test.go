package engine

import (
	"slices"
	"testing"

	"github.com/musterhq/muster/internal/engine/place"
)

// onlyNode returns a queue whose one node has capacity for one pod.
func onlyNode(t *testing.T, pods int64) *scene {
	n := node("a1", "a", 4)
	n.Allocatable[place.Pods] = pods
	return newScene(t, Options{}, append(onNodes[:2:2], evicting(queueOf("q", "", 100), lower), localOf("q"), n)...)
}

// TestWorkloadThatWaitsForItsOwnPodsIsDecidedOnce: pods of an earlier admission are on its node.
func TestWorkloadThatWaitsForItsOwnPodsIsDecidedOnce(t *testing.T) {
	s := onlyNode(t, 1)
	s.want("it comes while a pod of it is there", s.happens(job("low", "q", 1, 1, 0, 0), pod("low", 0, "a1", 1)), "low waits: WaitingForPreemptedWorkloads")
	if s.engine.Busy() {
		t.Error("the engine is busy though nothing can happen")
	}
	s.want("others do not get those places", s.happens(job("next", "q", 1, 1, 0, 1)), "next waits: TopologyPlacementFailed")
	s.want("its pod goes", s.happens(podGone("low", 0)), "admit low in q")
}

// TestPodsOfAnEarlierAdmissionAreNotThoseOfAPromise: it has places beside them, and they count until they are gone.
func TestPodsOfAnEarlierAdmissionAreNotThoseOfAPromise(t *testing.T) {
	s := onlyNode(t, 10)
	s.want("it comes, with a pod that leaves too little", s.happens(pod("low", 0, "a1", 1), job("low", "q", 2, 2, 0, 0)), "low waits: WaitingForPreemptedWorkloads")
	s.want("one comes that fits beside the pod", s.happens(job("small", "q", 1, 1, -1, 1)), "small waits: TopologyPlacementFailed")
	s.want("its pod goes", s.happens(podGone("low", 0)), "admit low in q")
}

// TestPromiseIsTakenByEarlierWorkloads: while the pods of an earlier admission terminate.
func TestPromiseIsTakenByEarlierWorkloads(t *testing.T) {
	s := onlyNode(t, 1)
	s.happens(job("low", "q", 1, 1, 0, 0), pod("low", 0, "a1", 1))
	s.want("one of higher priority comes", s.happens(job("high", "q", 1, 1, 1, 1)), "high waits: WaitingForPreemptedWorkloads", "low waits: TopologyPlacementFailed")
	s.want("the pod goes", s.happens(podGone("low", 0)), "admit high in q")
}

// TestEndedPodHoldsNoCapacityBeyondItsQuota: its place is free once its quota is; until then the pod may be created
// again.
func TestEndedPodHoldsNoCapacityBeyondItsQuota(t *testing.T) {
	s := cluster(t)
	s.happens(job("gang", "q", 4, 4, 0, 0))
	for n, on := range []string{"a1", "a2", "b1", "b2"} {
		s.happens(pod("gang", n, on, 4))
	}
	s.want("one comes", s.happens(job("next", "q", 1, 4, 0, 1)), "next waits: TopologyPlacementFailed")
	s.want("a pod ends, and may come back", s.happens(podGone("gang", 1)))
	s.want("its quota is given back", s.happens(s.changed("gang", func(w *Workload) {
		w.PodSets[0].Reclaimable = 1
		given := *w.Admission
		given.PodSets = slices.Clone(given.PodSets)
		given.PodSets[0].Count, given.PodSets[0].Usage = 3, map[string]int64{"cpu": 12}
		w.Admission = &given
	})), "admit next in q")
	s.placed("next", "a2:1")
}
