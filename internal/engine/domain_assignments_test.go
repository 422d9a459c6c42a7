package engine

import (
	"testing"

	"github.com/musterhq/muster/internal/engine/flavor"
)

// inRack returns a job that another controller admitted to a rack without naming nodes.
func inRack(name string, pods int32, cpu int64, of string) WorkloadSet {
	w := job(name, "q", pods, cpu, 0, 0)
	w.Admission = &Admission{ClusterQueue: "q", PodSets: []Assignment{{PodSet: "main", Count: pods, Flavors: map[string]string{"cpu": "default"},
		Usage: map[string]int64{"cpu": int64(pods) * cpu}, Within: []flavor.DomainCount{{Labels: map[string]string{rack: of}, Count: pods}}}}}
	return w
}

// TestPodsInADomainTakeCapacityOfItsNodes: although their nodes are not assigned.
func TestPodsInADomainTakeCapacityOfItsNodes(t *testing.T) {
	s := cluster(t, inRack("other", 2, 4, "a"))
	s.want("one pod more than fits arrives", s.happens(job("big", "q", 3, 4, 1, 1)), "big waits: TopologyPlacementFailed")
	s.want("what is left is given", s.happens(job("small", "q", 2, 4, 0, 2)), "admit small in q")
	s.placed("small", "b1:1", "b2:1")
	s.want("the other ends", s.happens(gone("other"), gone("small")), "admit big in q")
}

// TestPodsInADomainCountWhereTheyRun: not where they were expected, and not twice.
func TestPodsInADomainCountWhereTheyRun(t *testing.T) {
	s := cluster(t, inRack("other", 1, 2, "a"))
	for _, on := range []string{"a1", "a2"} {
		s.happens(pod("other", 0, on, 2))
		s.want("one comes, and it is on "+on, s.happens(job("big", "q", 3, 4, 1, 1)), "admit big in q")
		s.want("beside it are two", s.happens(job("beside", "q", 2, 1, 0, 2)), "admit beside in q")
		s.placed("beside", on+":2")
		s.happens(gone("big"), gone("beside"), podGone("other", 0))
	}
	s.want("its node fails", s.happens(pod("other", 1, "a1", 2), failed(node("a1", "a", 4))))
	s.placed("other")
	if s.engine.Busy() {
		t.Error("the engine is busy though nothing can happen")
	}
}
