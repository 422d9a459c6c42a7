package find

import (
	"testing"

	"github.com/musterhq/muster/internal/engine/place"
)

// index gives a pod its rank within its part.
func index(rank int32) func(*place.Pod) { return func(p *place.Pod) { p.Rank, p.HasRank = rank, true } }

// TestTheRankOfAMissingPodMoves: four pods in two slices have places on a1, a2 and, both of the second slice, b1, or on
// shared nodes. A cordon moves the places of the pods that are missing, so that each replacement finds the place of its
// rank free.
func TestTheRankOfAMissingPodMoves(t *testing.T) {
	slicesOfTwo := gpus(4, 1, sliced("rack", 2))
	for name, tc := range map[string]struct {
		ask    place.Ask
		places string
		scene  func(s *scene)
		want   string
	}{
		"the first of two on the node": {slicesOfTwo, "a1:1 a2:1 b1:2", func(s *scene) {
			s.pod("p0", "a1", 1, of("gang", "main"), index(0)).pod("p1", "a2", 1, of("gang", "main"), index(1)).pod("p3", "b1",
				1, of("gang", "main"), index(3))
		}, "a1:1 a2:1 b2:1 b1:1, 1 moved"},
		"the last of two on the node": {slicesOfTwo, "a1:1 a2:1 b1:2", func(s *scene) {
			s.pod("p0", "a1", 1, of("gang", "main"), index(0)).pod("p1", "a2", 1, of("gang", "main"), index(1)).pod("p2", "b1",
				1, of("gang", "main"), index(2))
		}, "a1:1 a2:1 b1:1 b2:1, 1 moved"},
		"of two slices on the node, the one that lacks a pod, though a pod of the other is not where its rank is": {slicesOfTwo,
			"b1:1 b2:1 b1:1 b2:1", func(s *scene) {
				s.node("b3")
				s.pod("p1", "b2", 1, of("gang", "main"), index(1)).pod("p2", "b2", 1, of("gang", "main"), index(2)).pod("p3", "b1",
					1, of("gang", "main"), index(3))
			}, "b2:2 b1:1 b2:1, 1 moved"},
		"a rank of the second Job": {gpus(4, 1), "a1:1 b1:3", func(s *scene) {
			s.pod("p0", "a1", 1, of("gang", "main"), job(0), index(0)).pod("p1", "b1", 1, of("gang", "main"), job(0),
				index(1)).pod("p3", "b1", 1, of("gang", "main"), job(1), index(1))
		}, "a1:1 b1:1 a1:1 b1:1, 1 moved"},
		"pods without ranks": {gpus(2, 1), "b1:2", func(s *scene) { s.pod("x", "b1", 1, of("gang", "main")) },
			"b1:1 b2:1, 1 moved"},
		"a rank beyond the places": {gpus(2, 1), "b1:2",
			func(s *scene) { s.pod("x", "b1", 1, of("gang", "main"), index(1<<31-1)) }, "b1:1 b2:1, 1 moved"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t).hold("gang", tc.ask, tc.places)
			tc.scene(s)
			s.node("b1", cordoned)
			if got := s.repair("gang"); got != tc.want {
				t.Errorf("repair: %s, want %s", got, tc.want)
			}
		})
	}
}
