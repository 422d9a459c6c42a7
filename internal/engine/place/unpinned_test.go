package place

import "testing"

// TestLoosePodsAreCountedWhereTheyAre: a gang of two pods of 3 GPUs has places on a1 and a2 and may be on any node. kube-scheduler put
// one of them on b1. Its place on a2 is nobody's then: others may have it, and the gang does not ail when a2 is cordoned.
func TestLoosePodsAreCountedWhereTheyAre(t *testing.T) {
	s := newScene(t).hold("gang", gpus(2, 3, unpinned), "a1:1 a2:1").pod("gang-0", "a1", 3, of("gang", "main"))
	two := gpus(1, 2, func(a *Ask) { a.NodeSelector = map[string]string{Hostname: "a2"} })
	if got := s.find(Now, two); got == "a2:1" {
		t.Error("the place of a pod that is not there yet was given away")
	}
	s.pod("gang-1", "b1", 3, of("gang", "main"))
	if got := s.find(Now, two); got != "a2:1" {
		t.Errorf("%s, want a2: the pod is on another node", got)
	}
	s.node("a2", cordoned)
	if got := s.invalid(); got != "" {
		t.Errorf("%q ails, want nobody: all pods are there", got)
	}
	s.DeletePod(key("gang-1"))
	if got := s.invalid(); got != "gang" {
		t.Errorf("%q ails, want gang: who comes for the pod that is gone cannot go to a2", got)
	}
	s.node("a2").pod("gang-1", "c1", 3, of("gang", "main")).node("c1", cordoned).node("a2", failed)
	if got := s.invalid(); got != "" {
		t.Errorf("%q ails, want nobody: there is no pod of it on a2", got)
	}
	s.DeleteNode("a2")
	s.DeletePod(key("gang-1"))
	if got := s.repair("gang"); got != "a1:1 b1:1, 1 moved" {
		t.Errorf("repair: %s", got)
	}
}

// TestLoosePodsCountWhereTheyStand: a pod that is lost or goes is not the one that another place was for.
func TestLoosePodsCountWhereTheyStand(t *testing.T) {
	onA2 := gpus(1, 2, func(a *Ask) { a.NodeSelector = map[string]string{Hostname: "a2"} })
	gang := func(first, second string, changes ...func(*Holding)) *scene {
		s := newScene(t).pod("gang-0", first, 3, of("gang", "main")).pod("gang-1", second, 3, of("gang", "main")).
			hold("gang", gpus(2, 3, unpinned), "a1:1 a2:1", changes...)
		s.TakeInvalid()
		return s
	}
	for name, tc := range map[string]struct {
		do     func() *scene
		ailing string
		given  bool // whether others may have the place on a2
	}{
		"a pod's node is deleted under it": {func() *scene { s := gang("a1", "a2"); s.DeleteNode("a2"); return s }, "gang", false},
		"a pod's node is deleted where it has no place": {func() *scene {
			s := gang("a1", "b1")
			s.DeleteNode("b1")
			return s.node("a2", cordoned)
		}, "gang", false},
		"and comes again": {func() *scene {
			s := gang("a1", "b1")
			s.DeleteNode("b1")
			return s.node("b1")
		}, "", true},
		"a pod's node fails under it":                   {func() *scene { return gang("a1", "a2").node("a2", failed) }, "gang", false},
		"a pod's node fails where it has no place":      {func() *scene { return gang("a1", "b1").node("b1", failed) }, "", false},
		"which is cordoned besides":                     {func() *scene { return gang("a1", "b1").node("a2", cordoned).node("b1", failed) }, "gang", false},
		"and works again":                               {func() *scene { return gang("a1", "b1").node("b1", failed).node("b1") }, "", true},
		"it is a promise, and the pods are from before": {func() *scene { return gang("b1", "b2", promised).node("a2", cordoned) }, "gang", false},
		"a pod goes, and the one for it is on its way": {func() *scene {
			return gang("a1", "b1").pod("gang-1", "b1", 3, of("gang", "main"), terminating)
		}, "", false},
		"which cannot go there": {func() *scene {
			return gang("a1", "b1").node("a2", cordoned).pod("gang-1", "b1", 3, of("gang", "main"), terminating)
		}, "gang", false},
		"a pod goes, the one for it is there, and the other is gone": {func() *scene {
			s := gang("a1", "b1").pod("gang-1", "b1", 3, of("gang", "main"), terminating).pod("gang-2", "b2", 3, of("gang", "main"))
			s.DeletePod(key("gang-0"))
			return s
		}, "", false},
		"a pod goes, and the one for it is there": {func() *scene {
			return gang("a1", "b1").pod("gang-1", "b1", 3, of("gang", "main"), terminating).pod("gang-2", "b2", 3, of("gang", "main"))
		}, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			s := tc.do()
			if got := s.invalid(); got != tc.ailing {
				t.Errorf("%q ails, want %q", got, tc.ailing)
			}
			if got := s.find(Now, onA2) == "a2:1"; got != tc.given {
				t.Errorf("the place on a2 is given to others: %t", got)
			}
		})
	}
}
