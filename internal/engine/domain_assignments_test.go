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

// TestPodsInADomainTakeCapacityOfItsNodes: pods that another controller assigned to a domain count there, although
// their nodes are not assigned.
func TestPodsInADomainTakeCapacityOfItsNodes(t *testing.T) {
	s := cluster(t, inRack("other", 2, 4, "a"))
	s.want("a job of one pod too many arrives", s.happens(job("big", "q", 3, 4, 1, 1)), "big waits: TopologyPlacementFailed")
	s.want("a job that fits arrives", s.happens(job("small", "q", 2, 4, 0, 2)), "admit small in q")
	s.wantPlaces("small", "b1:1", "b2:1")
	s.want("the other jobs end", s.happens(gone("other"), gone("small")), "admit big in q")
}

// TestPodsInADomainCountWhereTheyRun: once bound, pods count on their nodes, not where they were expected, and not
// twice.
func TestPodsInADomainCountWhereTheyRun(t *testing.T) {
	s := cluster(t, inRack("other", 1, 2, "a"))
	for _, on := range []string{"a1", "a2"} {
		s.happens(pod("other", 0, on, 2))
		s.want("a job arrives while the pod is on "+on, s.happens(job("big", "q", 3, 4, 1, 1)), "admit big in q")
		s.want("a job that fits beside it arrives", s.happens(job("beside", "q", 2, 1, 0, 2)), "admit beside in q")
		s.wantPlaces("beside", on+":2")
		s.happens(gone("big"), gone("beside"), podGone("other", 0))
	}
	s.want("the node of the running pod fails", s.happens(pod("other", 1, "a1", 2), failed(node("a1", "a", 4))))
	s.wantPlaces("other")
	if s.engine.Busy() {
		t.Error("the engine is busy, want it idle: nothing can change")
	}
}
