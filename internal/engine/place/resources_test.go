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
	for name, use := range map[string]func(m *Map, turn int){
		"of pods": func(m *Map, turn int) {
			m.SetPod(Pod{Key: named("p"), Node: "a1", Requests: manyResources(1000, fmt.Sprint("a", turn))})
			m.DeletePod(named("p"))
		},
		"of asks": func(m *Map, turn int) {
			m.Shapes.LoadOf(&Ask{PodSet: "main", Flavor: "f", Count: 1, PerPod: manyResources(1000, fmt.Sprint("b", turn))})
		},
		"of places": func(m *Map, turn int) {
			ask := Ask{PodSet: "main", Flavor: "f", Count: 1, PerPod: manyResources(1000, fmt.Sprint("c", turn))}
			m.Hold(named("w"), &Holding{PodSets: []HeldPodSet{{Ask: ask, Nodes: []NodeCount{{Node: "a1", Count: 1}}}}})
			m.Hold(named("w"), nil)
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := New()
			m.SetNode(Node{Name: "a1", Allocatable: map[string]int64{Pods: 10, "cpu": 8000}})
			before := len(m.resources.names)
			for turn := range 3 {
				use(m, turn)
			}
			if after := len(m.resources.names); after != before {
				t.Errorf("%d resources are known, want the %d that nodes have", after, before)
			}
		})
	}
}
