package engine

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/engine/state"
)

// refuses returns the event that kube-scheduler finds no room for a pod of the job on the node.
func refuses(job, node string) PodUnschedulable {
	return PodUnschedulable{Workload: Key{Namespace: "ns", Name: job}, Node: node,
		Why: "1 node(s) had volume node affinity conflict"}
}

// TestNodeRefusedByKubeSchedulerIsTriedAgain: the node is avoided for a time that grows with each refusal, and is then
// used again.
func TestNodeRefusedByKubeSchedulerIsTriedAgain(t *testing.T) {
	s := newScene(t, Options{},
		slices.Concat(onNodes, []Event{queueOf("q", "", 1000), localOf("q"), node("a1", "a", 4)})...)
	s.want("the job arrives", s.happens(job("one", "q", 1, 4, 0, 0)), "admit one in q")
	for _, wait := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second} {
		s.want("kube-scheduler refuses its node", s.happens(refuses("one", "a1")), "evict one: NodeFailures")
		s.now = s.now.Add(time.Hour) // it takes long to stop
		s.want("its pods are gone", s.happens(s.stopped("one")), "one waits: TopologyPlacementFailed")
		if due := s.engine.Due(); !due.Equal(s.now.Add(wait)) {
			t.Errorf("next pass due at %v, %v after the pods were gone, want %v after", due, due.Sub(s.now), wait)
		}
		s.now = s.now.Add(wait - 1)
		s.want("just before the retry time", s.happens())
		s.now = s.now.Add(1)
		s.want("after the retry time", s.happens(), "admit one in q")
	}
}

// TestAvoidanceGrowsWithTheNodesThatRefuse: nodes are avoided long enough for the job to try each of them in turn.
func TestAvoidanceGrowsWithTheNodesThatRefuse(t *testing.T) {
	for name, tc := range map[string]struct {
		nodes, times int
		want         time.Duration
	}{
		"one node":                    {1, 0, time.Second},
		"a hundred":                   {100, 0, 100 * time.Second},
		"one, again and again":        {1, 50, state.LongestRetry},
		"a hundred, again and again":  {100, 50, state.LongestAvoidance},
		"a hundred thousand at once":  {100_000, 0, state.LongestAvoidance},
		"all there are, for the last": {100_000, 1 << 30, state.LongestAvoidance},
	} {
		a := state.Avoidance{Nodes: make([]string, tc.nodes), Times: tc.times}
		if got := a.Duration(); got != tc.want {
			t.Errorf("%s: nodes are avoided for %v, want %v", name, got, tc.want)
		}
	}
}

// TestWorkloadWithPlacesAvoidsRefusedNodes: the nodes that refused it are avoided for as long as it takes to find
// another node.
func TestWorkloadWithPlacesAvoidsRefusedNodes(t *testing.T) {
	s := cluster(t)
	s.happens(job("one", "q", 1, 4, 0, 0))
	var seen []string
	for range len(nodeNames) - 2 { // the cluster has one node less, and one is left
		at := s.places("one")[0][:2]
		if slices.Contains(seen, at) {
			t.Fatalf("the workload is placed on %s, which refused it before (%v)", at, seen)
		}
		seen = append(seen, at)
		s.want("kube-scheduler refuses the node", s.happens(refuses("one", at)), "replace one")
		s.now = s.now.Add(time.Hour)
		s.want("an hour later", s.happens())
	}
}

// TestWorkloadRefusedTwiceInARackLeavesIt: after two refusals in a rack, a workload does not try its other nodes.
func TestWorkloadRefusedTwiceInARackLeavesIt(t *testing.T) {
	nodes := []Event{queueOf("q", "", 1000), localOf("q")}
	for _, rack := range []string{"a", "b"} {
		for i := range 8 {
			nodes = append(nodes, node(fmt.Sprint(rack, i), rack, 4))
		}
	}
	s := newScene(t, Options{}, slices.Concat(onNodes, nodes)...)
	s.happens(job("one", "q", 1, 4, 0, 0))
	first := s.places("one")[0][:1]
	for refused := 1; s.places("one")[0][:1] == first; refused++ {
		if refused > 2 {
			t.Fatalf("after %d refusals the workload is still in rack %s", refused-1, first)
		}
		s.want("kube-scheduler refuses the node", s.happens(refuses("one", s.places("one")[0][:2])), "replace one")
	}
}
