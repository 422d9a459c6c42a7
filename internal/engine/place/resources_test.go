package place

import (
	"fmt"
	"testing"
)

// manyResources are amounts of so many resources that no node has.
func manyResources(many int, from string) map[string]int64 {
	out := map[string]int64{"cpu": 1}
	for i := range many {
		out[fmt.Sprintf("%s/r%d", from, i)] = 1
	}
	return out
}

// TestResourcesThatNoNodeHasTakeNoMemoryOfNodes: a pod may name thousands of resources, and be deleted at once.
func TestResourcesThatNoNodeHasTakeNoMemoryOfNodes(t *testing.T) {
	for name, use := range map[string]func(s *scene, turn int){
		"of pods": func(s *scene, turn int) {
			s.SetPod(Pod{Key: key("p"), Node: "a1", Requests: manyResources(1000, fmt.Sprint("a", turn))})
			s.DeletePod(key("p"))
		},
		"of asks": func(s *scene, turn int) {
			s.Find([]Ask{{PodSet: "main", Flavor: "f", Count: 1, PerPod: manyResources(1000, fmt.Sprint("b", turn))}}, Now)
		},
		"of places": func(s *scene, turn int) {
			ask := Ask{PodSet: "main", Flavor: "f", Count: 1, PerPod: manyResources(1000, fmt.Sprint("c", turn))}
			s.Hold(key("w"), &Holding{PodSets: []HeldPodSet{{Ask: ask, Nodes: []NodeCount{{"a1", 1}}}}})
			s.Hold(key("w"), nil)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			before := len(s.resources.names)
			for turn := range 3 {
				use(s, turn)
			}
			if after := len(s.resources.names); after != before {
				t.Errorf("%d resources are known, want the %d that nodes have", after, before)
			}
		})
	}
}

// TestAResourceThatNodesGetCountsForPodsThatUseIt: a device plugin may start after pods that ask for its devices were
// bound, as where the kubelet was restarted.
func TestAResourceThatNodesGetCountsForPodsThatUseIt(t *testing.T) {
	devices := func(amount int64) func(*Node) {
		return func(n *Node) { n.Allocatable = map[string]int64{Pods: 10, "cpu": 8000, "dev": amount} }
	}
	ask := func(devices int64) Ask {
		return Ask{PodSet: "main", Flavor: "f", Count: 1, PerPod: map[string]int64{"cpu": 1, "dev": devices}}
	}
	s := newScene(t)
	s.SetPod(Pod{Key: key("p"), Node: "a1", Requests: map[string]int64{"cpu": 1, "dev": 1, "never": 5}})
	held := ask(2)
	s.Hold(key("w"), &Holding{PodSets: []HeldPodSet{{Ask: held, Nodes: []NodeCount{{"a1", 1}}}}})
	_, short := s.Find([]Ask{ask(1)}, Now)
	if want := `topology "t" doesn't allow to fit any of 1 pod(s). Total nodes: 6; excluded: resource "dev": 6`; short.Message() != want {
		t.Errorf("got %q, want %q", short.Message(), want)
	}
	s.node("a1", devices(4))
	for amount, fits := range map[int64]bool{1: true, 2: false} {
		if got := s.Fits([]Ask{ask(amount)}, Now); got != fits {
			t.Errorf("a pod of %d devices fits: %t, want %t: of 4 devices the pod uses 1 and the workload's place 2", amount, got, fits)
		}
	}
	s.DeletePod(key("p"))
	s.Hold(key("w"), nil)
	if !s.Fits([]Ask{ask(4)}, Now) {
		t.Error("a pod of all 4 devices does not fit, although nothing uses them any more")
	}
}
