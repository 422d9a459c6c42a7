package find

import (
	"fmt"
	"testing"

	"github.com/musterhq/muster/internal/engine/place"
	corev1 "k8s.io/api/core/v1"
)

// cluster returns a scene of nodes n00, n01 and so on of 4 GPUs each: four to a rack, and perZone to a block and to a
// zone, which is not a level.
func cluster(t *testing.T, nodes, perZone int, changes ...func(i int, n *place.Node)) *scene {
	t.Helper()
	s := newScene(t)
	for _, name := range []string{"a1", "a2", "b1", "b2", "c1", "c2"} {
		s.DeleteNode(name)
	}
	for i := range nodes {
		name := fmt.Sprintf("n%02d", i)
		n := place.Node{Name: name, Allocatable: map[string]int64{place.Pods: 10, "gpu": 4}, Labels: map[string]string{
			place.Hostname: name, "block": fmt.Sprint(i / perZone), "rack": fmt.Sprint(i / 4),
			corev1.LabelTopologyZone: fmt.Sprint(i / perZone)}}
		for _, change := range changes {
			change(i, &n)
		}
		s.SetNode(n)
	}
	return s
}

// TestAreasAreLeftOutOnlyIfTheRestIsEnough counts the node changes that a search logs: each of them makes
// every tally recount a node.
func TestAreasAreLeftOutOnlyIfTheRestIsEnough(t *testing.T) {
	avoiding := func(nodes ...string) func(*place.Ask) { return func(a *place.Ask) { a.Avoid = nodes } }
	flavored := func(a *place.Ask) { a.NodeSelector = map[string]string{"pool": "x"} }
	for name, tc := range map[string]struct {
		s    *scene
		ask  place.Ask
		want string
		// beside is the number of nodes that were excluded besides the avoided ones.
		beside int
	}{
		"all nodes are in one zone": {
			cluster(t, 48, 48), gpus(1, 1, avoiding("n00", "n04")), "n01:1", 0},
		"all nodes are in one block": {
			cluster(t, 48, 48, func(_ int, n *place.Node) { delete(n.Labels, corev1.LabelTopologyZone) }),
			gpus(1, 1, avoiding("n00", "n04")), "n01:1", 0},
		"all feasible nodes are in one zone": {
			cluster(t, 48, 24, func(i int, n *place.Node) { n.Labels["pool"] = map[bool]string{true: "x"}[i < 24] }),
			gpus(1, 1, flavored, avoiding("n00", "n04")), "n01:1", 0},
		"the other zone holds some of the pods": {
			cluster(t, 48, 40), gpus(33, 1, avoiding("n00", "n04")),
			"n08:4 n09:4 n10:4 n11:4 n12:4 n13:4 n14:4 n15:4 n01:1", 0},
		"the other zone holds all pods, but no rack of it does": {
			cluster(t, 48, 40, func(i int, n *place.Node) { n.Cordoned = i > 40 && i != 44 }),
			gpus(8, 1, required("rack"), avoiding("n00", "n04")), "n01:4 n02:4", 0},
		"the other zone holds all pods, but no node of it does": {
			cluster(t, 48, 40, func(i int, n *place.Node) {
				if i >= 40 {
					n.Allocatable["gpu"] = 1
				}
			}), gpus(2, 1, required(place.Hostname), avoiding("n00", "n04")), "n01:2", 0},
		"the other zone holds all pods": {
			cluster(t, 48, 40), gpus(32, 1, avoiding("n00", "n04")), "n40:4 n41:4 n42:4 n43:4 n44:4 n45:4 n46:4 n47:4", 38},
		"the whole rack is needed": {
			cluster(t, 48, 48), gpus(1, 1, avoiding("n00", "n01")), "n04:1", 2},
	} {
		t.Run(name, func(t *testing.T) {
			before := tc.s.MarkRead()
			if got := tc.s.find(place.Now, tc.ask); got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
			if noted, want := int(tc.s.MarkRead()-before), 2*(len(tc.ask.Avoid)+tc.beside); noted != want {
				t.Errorf("%d node changes were logged, want %d", noted, want)
			}
		})
	}
}

// TestTheExhaustiveSearchUsesAllNodes: each of two pod sets fits in the other zone, but not both.
func TestTheExhaustiveSearchUsesAllNodes(t *testing.T) {
	s := cluster(t, 32, 16)
	small, large := gpus(12, 2), gpus(11, 3)
	small.PodSet, large.PodSet = "small", "large"
	small.Avoid = []string{"n00", "n04"}
	large.Avoid = small.Avoid
	before := s.MarkRead()
	if _, short := s.Find([]place.Ask{small, large}, place.Now); short != nil {
		t.Fatal(short.Message())
	}
	if noted := s.MarkRead() - before; noted > 500 {
		t.Errorf("%d node changes were logged", noted)
	}
	large.Count = 27
	before = s.MarkRead()
	if _, short := s.Find([]place.Ask{small, large}, place.Now); short == nil {
		t.Error("places were found beyond the capacity")
	}
	if noted := s.MarkRead() - before; noted < 2000 {
		t.Errorf("%d node changes were logged: the search was not exhaustive", noted)
	}
}
