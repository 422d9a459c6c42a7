package place

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAGangIsPlacedInOneDomain(t *testing.T) {
	m := New()
	m.SetTopology(Topology{Name: "t", Levels: []string{"rack", Hostname}})
	m.SetFlavor(Flavor{Name: "f", Topology: "t"})
	for _, n := range []string{"a-1", "a-2", "b-1", "b-2"} {
		m.SetNode(Node{Name: n, Labels: map[string]string{"rack": n[:1], Hostname: n}, Allocatable: map[string]int64{Pods: 10, "gpu": 4}})
	}
	m.SetNode(Node{Name: "a-2", Labels: map[string]string{"rack": "a", Hostname: "a-2"}, Allocatable: map[string]int64{Pods: 10, "gpu": 2}})
	got, short := m.Find([]Ask{{PodSet: "main", Flavor: "f", Count: 7, PerPod: map[string]int64{"gpu": 1}, Level: "rack", Mandatory: true}}, Now)
	if short != nil {
		t.Fatal(short.Message())
	}
	if diff := cmp.Diff([]Assignment{{PodSet: "main", Nodes: []NodeCount{{"b-1", 4}, {"b-2", 3}}}}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
