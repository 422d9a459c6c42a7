package find

import (
	"testing"

	"github.com/musterhq/muster/internal/engine/place"
)

// TestAResourceThatNodesGetCountsForPodsThatUseIt: a device plugin may start after pods that ask for its devices were
// bound, as where the kubelet was restarted.
func TestAResourceThatNodesGetCountsForPodsThatUseIt(t *testing.T) {
	devices := func(amount int64) func(*place.Node) {
		return func(n *place.Node) { n.Allocatable = map[string]int64{place.Pods: 10, "cpu": 8000, "dev": amount} }
	}
	ask := func(devices int64) place.Ask {
		return place.Ask{PodSet: "main", Flavor: "f", Count: 1, PerPod: map[string]int64{"cpu": 1, "dev": devices}}
	}
	s := newScene(t)
	s.SetPod(place.Pod{Key: key("p"), Node: "a1", Requests: map[string]int64{"cpu": 1, "dev": 1, "never": 5}})
	held := ask(2)
	s.Hold(key("w"),
		&place.Holding{PodSets: []place.HeldPodSet{{Ask: held, Nodes: []place.NodeCount{{Node: "a1", Count: 1}}}}})
	_, short := s.Find([]place.Ask{ask(1)}, place.Now)
	if want := `topology "t" doesn't allow to fit any of 1 pod(s). Total nodes: 6; excluded: resource "dev": 6`; short.Message() != want {
		t.Errorf("got %q, want %q", short.Message(), want)
	}
	s.node("a1", devices(4))
	for amount, fits := range map[int64]bool{1: true, 2: false} {
		if got := s.Fits([]place.Ask{ask(amount)}, place.Now); got != fits {
			t.Errorf("a pod of %d devices fits: %t, want %t: of 4 devices the pod uses 1 and the workload's place 2", amount, got, fits)
		}
	}
	s.DeletePod(key("p"))
	s.Hold(key("w"), nil)
	if !s.Fits([]place.Ask{ask(4)}, place.Now) {
		t.Error("a pod of all 4 devices does not fit, although nothing uses them any more")
	}
}
