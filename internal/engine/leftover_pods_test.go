package engine

import (
	"slices"
	"testing"

	"github.com/musterhq/muster/internal/engine/place"
)

// onlyNode returns a scene whose only node has capacity for that number of pods.
func onlyNode(t *testing.T, pods int64) *scene {
	n := node("a1", "a", 4)
	n.Allocatable[place.Pods] = pods
	return newScene(t, Options{}, append(onNodes[:2:2], evicting(queueOf("q", "", 100), lower), localOf("q"), n)...)
}

// TestWorkloadThatWaitsForItsOwnPodsIsDecidedOnce: a workload waits for its pods of an earlier admission, and is not
// evaluated again until they are gone.
func TestWorkloadThatWaitsForItsOwnPodsIsDecidedOnce(t *testing.T) {
	s := onlyNode(t, 1)
	s.want("the job arrives while an old pod of it exists", s.happens(job("low", "q", 1, 1, 0, 0), pod("low", 0, "a1", 1)), "low waits: WaitingForPreemptedWorkloads")
	if s.engine.Busy() {
		t.Error("the engine is busy, want it idle: nothing can change")
	}
	s.want("another workload arrives", s.happens(job("next", "q", 1, 1, 0, 1)), "next waits: TopologyPlacementFailed")
	s.want("its old pod is gone", s.happens(podGone("low", 0)), "admit low in q")
}

// TestPodsOfAnEarlierAdmissionAreNotThoseOfAPromise: a workload is promised places beside its pods of an earlier
// admission, which count until they are gone.
func TestPodsOfAnEarlierAdmissionAreNotThoseOfAPromise(t *testing.T) {
	s := onlyNode(t, 10)
	s.want("the job arrives with an old pod that leaves too little capacity", s.happens(pod("low", 0, "a1", 1), job("low", "q", 2, 2, 0, 0)), "low waits: WaitingForPreemptedWorkloads")
	s.want("a workload that fits beside the pod arrives", s.happens(job("small", "q", 1, 1, -1, 1)), "small waits: TopologyPlacementFailed")
	s.want("its old pod is gone", s.happens(podGone("low", 0)), "admit low in q")
}

// TestPromiseGoesToAWorkloadOfHigherPriority: while pods of an earlier admission terminate, the promise goes to a
// workload of higher priority.
func TestPromiseGoesToAWorkloadOfHigherPriority(t *testing.T) {
	s := onlyNode(t, 1)
	s.happens(job("low", "q", 1, 1, 0, 0), pod("low", 0, "a1", 1))
	s.want("a workload of higher priority arrives", s.happens(job("high", "q", 1, 1, 1, 1)), "high waits: WaitingForPreemptedWorkloads", "low waits: TopologyPlacementFailed")
	s.want("the pod is gone", s.happens(podGone("low", 0)), "admit high in q")
}

// TestEndedPodHoldsNoCapacityBeyondItsQuota: the place of an ended pod is free once its quota is released; until then
// the pod may be created again.
func TestEndedPodHoldsNoCapacityBeyondItsQuota(t *testing.T) {
	s := cluster(t)
	s.happens(job("gang", "q", 4, 4, 0, 0))
	for n, on := range []string{"a1", "a2", "b1", "b2"} {
		s.happens(pod("gang", n, on, 4))
	}
	s.want("another workload arrives", s.happens(job("next", "q", 1, 4, 0, 1)), "next waits: TopologyPlacementFailed")
	s.want("a pod ends that may be created again", s.happens(podGone("gang", 1)))
	s.want("its quota is released", s.happens(s.changed("gang", func(w *Workload) {
		w.PodSets[0].Reclaimable = 1
		given := *w.Admission
		given.PodSets = slices.Clone(given.PodSets)
		given.PodSets[0].Count, given.PodSets[0].Usage = 3, map[string]int64{"cpu": 12}
		w.Admission = &given
	})), "admit next in q")
	s.wantPlaces("next", "a2:1")
}
