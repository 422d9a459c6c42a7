package place

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// hall is n00 and so on of 4 GPUs each: four to a rack, and so many to a block and to a zone, which is no level.
func hall(t *testing.T, nodes, perZone int, changes ...func(i int, n *Node)) *scene {
	t.Helper()
	s := newScene(t)
	for _, name := range []string{"a1", "a2", "b1", "b2", "c1", "c2"} {
		s.DeleteNode(name)
	}
	for i := range nodes {
		name := fmt.Sprintf("n%02d", i)
		n := Node{Name: name, Allocatable: map[string]int64{Pods: 10, "gpu": 4}, Labels: map[string]string{
			Hostname: name, "block": fmt.Sprint(i / perZone), "rack": fmt.Sprint(i / 4), corev1.LabelTopologyZone: fmt.Sprint(i / perZone)}}
		for _, change := range changes {
			change(i, &n)
		}
		s.SetNode(n)
	}
	return s
}

// TestWhatIsLeftOfAllIsEnoughOrItIsNotTried counts the changes of nodes that a search notes: each costs every kind of pods a look at
// a node.
func TestWhatIsLeftOfAllIsEnoughOrItIsNotTried(t *testing.T) {
	avoiding := func(nodes ...string) func(*Ask) { return func(a *Ask) { a.Avoid = nodes } }
	flavored := func(a *Ask) { a.NodeSelector = map[string]string{"pool": "x"} }
	for name, tc := range map[string]struct {
		s    *scene
		ask  Ask
		want string
		// beside is how many nodes were kept off beside those that are no good.
		beside int
	}{
		"one zone has all nodes": {
			hall(t, 48, 48), gpus(1, 1, avoiding("n00", "n04")), "n01:1", 0},
		"one block has": {
			hall(t, 48, 48, func(_ int, n *Node) { delete(n.Labels, corev1.LabelTopologyZone) }), gpus(1, 1, avoiding("n00", "n04")), "n01:1", 0},
		"one zone has all nodes that the pods may be on": {
			hall(t, 48, 24, func(i int, n *Node) { n.Labels["pool"] = map[bool]string{true: "x"}[i < 24] }), gpus(1, 1, flavored, avoiding("n00", "n04")), "n01:1", 0},
		"the other zone has room for some": {
			hall(t, 48, 40), gpus(33, 1, avoiding("n00", "n04")),
			"n08:4 n09:4 n10:4 n11:4 n12:4 n13:4 n14:4 n15:4 n01:1", 0},
		"the other zone has room for all, but in no one rack": {
			hall(t, 48, 40, func(i int, n *Node) { n.Cordoned = i > 40 && i != 44 }), gpus(8, 1, required("rack"), avoiding("n00", "n04")),
			"n01:4 n02:4", 0},
		"the other zone has room on no one node": {
			hall(t, 48, 40, func(i int, n *Node) {
				if i >= 40 {
					n.Allocatable["gpu"] = 1
				}
			}), gpus(2, 1, required(Hostname), avoiding("n00", "n04")), "n01:2", 0},
		"the other zone has room for all": {
			hall(t, 48, 40), gpus(32, 1, avoiding("n00", "n04")), "n40:4 n41:4 n42:4 n43:4 n44:4 n45:4 n46:4 n47:4", 38},
		"all of a rack, where that is the most there is": {
			hall(t, 48, 48), gpus(1, 1, avoiding("n00", "n01")), "n04:1", 2},
	} {
		t.Run(name, func(t *testing.T) {
			before := tc.s.log.next()
			if got := tc.s.find(Now, tc.ask); got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
			if noted, want := int(tc.s.log.next()-before), 2*(len(tc.ask.Avoid)+tc.beside); noted != want {
				t.Errorf("%d changes of nodes were noted, want %d", noted, want)
			}
		})
	}
}

// TestEveryWayIsTriedOnlyWithAllThereIs: two pod sets that each fit in the other zone, and together do not.
func TestEveryWayIsTriedOnlyWithAllThereIs(t *testing.T) {
	s := hall(t, 32, 16)
	small, large := gpus(12, 2), gpus(11, 3)
	small.PodSet, large.PodSet = "small", "large"
	small.Avoid = []string{"n00", "n04"}
	large.Avoid = small.Avoid
	before := s.log.next()
	if _, short := s.Find([]Ask{small, large}, Now); short != nil {
		t.Fatal(short.Message())
	}
	if noted := s.log.next() - before; noted > 500 {
		t.Errorf("%d changes of nodes were noted", noted)
	}
	large.Count = 27
	before = s.log.next()
	if _, short := s.Find([]Ask{small, large}, Now); short == nil {
		t.Error("there are places for more than there is")
	}
	if noted := s.log.next() - before; noted < 2000 {
		t.Errorf("%d changes of nodes were noted: not every way was tried", noted)
	}
}
