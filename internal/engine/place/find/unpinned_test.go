package find

import (
	"testing"

	"github.com/musterhq/muster/internal/engine/place"
)

// TestUnpinnedPodsCountWhereTheyAre: a gang of two pods of 3 GPUs has places on a1 and a2, and may use any
// node. kube-scheduler binds one pod to b1. Then its place on a2 is free, and not invalid when a2 is
// cordoned.
func TestUnpinnedPodsCountWhereTheyAre(t *testing.T) {
	s := newScene(t).hold("gang", gpus(2, 3, unpinned), "a1:1 a2:1").pod("gang-0", "a1", 3, of("gang", "main"))
	two := gpus(1, 2, func(a *place.Ask) { a.NodeSelector = map[string]string{place.Hostname: "a2"} })
	if got := s.find(place.Now, two); got == "a2:1" {
		t.Error("the place of a pod that does not exist yet is free")
	}
	s.pod("gang-1", "b1", 3, of("gang", "main"))
	if got := s.find(place.Now, two); got != "a2:1" {
		t.Errorf("free places = %s, want a2: the pod is on another node", got)
	}
	s.node("a2", cordoned)
	if got := s.invalid(); got != "" {
		t.Errorf("invalid places of %q, want none: all pods are there", got)
	}
	s.DeletePod(key("gang-1"))
	if got := s.invalid(); got != "gang" {
		t.Errorf("invalid places of %q, want of gang: the replacement of the deleted pod cannot use a2", got)
	}
	s.node("a2").pod("gang-1", "c1", 3, of("gang", "main")).node("c1", cordoned).node("a2", failed)
	if got := s.invalid(); got != "" {
		t.Errorf("invalid places of %q, want none: no pod of the gang is on a2", got)
	}
	s.DeleteNode("a2")
	s.DeletePod(key("gang-1"))
	if got := s.repair("gang"); got != "a1:1 b1:1, 1 moved" {
		t.Errorf("repair: %s, want a1:1 b1:1", got)
	}
}

// TestOnlyLiveUnpinnedPodsFreeAPlace: a pod that is lost or terminating will be replaced, and its
// replacement needs a place.
func TestOnlyLiveUnpinnedPodsFreeAPlace(t *testing.T) {
	onA2 := gpus(1, 2, func(a *place.Ask) { a.NodeSelector = map[string]string{place.Hostname: "a2"} })
	gang := func(first, second string, changes ...func(*place.Holding)) *scene {
		s := newScene(t).pod("gang-0", first, 3, of("gang", "main")).pod("gang-1", second, 3, of("gang", "main")).
			hold("gang", gpus(2, 3, unpinned), "a1:1 a2:1", changes...)
		s.TakeInvalid()
		return s
	}
	for name, tc := range map[string]struct {
		do      func() *scene
		invalid string
		given   bool // whether others may use the place on a2
	}{
		"the node of a pod at its place is deleted": {func() *scene {
			s := gang("a1", "a2")
			s.DeleteNode("a2")
			return s
		}, "gang", false},
		"the node of a pod elsewhere is deleted": {func() *scene {
			s := gang("a1", "b1")
			s.DeleteNode("b1")
			return s.node("a2", cordoned)
		}, "gang", false},
		"the node of a pod elsewhere is recreated": {func() *scene {
			s := gang("a1", "b1")
			s.DeleteNode("b1")
			return s.node("b1")
		}, "", true},
		"the node of a pod at its place fails": {func() *scene {
			return gang("a1", "a2").node("a2", failed)
		}, "gang", false},
		"the node of a pod elsewhere fails": {func() *scene {
			return gang("a1", "b1").node("b1", failed)
		}, "", false},
		"the node of a pod elsewhere fails, its place is cordoned": {func() *scene {
			return gang("a1", "b1").node("a2", cordoned).node("b1", failed)
		}, "gang", false},
		"the node of a pod elsewhere recovers": {func() *scene {
			return gang("a1", "b1").node("b1", failed).node("b1")
		}, "", true},
		"nominated places, pods of an earlier admission": {func() *scene {
			return gang("b1", "b2", nominated).node("a2", cordoned)
		}, "gang", false},
		"a pod is terminating, its replacement is not there": {func() *scene {
			return gang("a1", "b1").pod("gang-1", "b1", 3, of("gang", "main"), terminating)
		}, "", false},
		"a pod is terminating, its replacement cannot use the place": {func() *scene {
			return gang("a1", "b1").node("a2", cordoned).pod("gang-1", "b1", 3, of("gang", "main"), terminating)
		}, "gang", false},
		"a pod is terminating, its replacement is there, the other pod is gone": {func() *scene {
			s := gang("a1", "b1").pod("gang-1", "b1", 3, of("gang", "main"), terminating).pod("gang-2", "b2", 3,
				of("gang", "main"))
			s.DeletePod(key("gang-0"))
			return s
		}, "", false},
		"a pod is terminating, its replacement is there": {func() *scene {
			return gang("a1", "b1").pod("gang-1", "b1", 3, of("gang", "main"), terminating).pod("gang-2", "b2", 3,
				of("gang", "main"))
		}, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			s := tc.do()
			if got := s.invalid(); got != tc.invalid {
				t.Errorf("invalid places of %q, want %q", got, tc.invalid)
			}
			if got := s.find(place.Now, onA2) == "a2:1"; got != tc.given {
				t.Errorf("the place on a2 is free = %t, want %t", got, tc.given)
			}
		})
	}
}
