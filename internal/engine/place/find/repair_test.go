package find

import (
	"fmt"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/engine/place"
	corev1 "k8s.io/api/core/v1"
)

// TestRepair: a gang of six pods of one GPU each has places on a1 and a2. Each case says which pods have
// started.
func TestRepair(t *testing.T) {
	started := func(s *scene, on string, count int) {
		for i := range count {
			s.pod(on+string(rune('0'+i)), on, 1, of("gang", "main"))
		}
	}
	inRack := gpus(6, 1, required("rack"))
	for name, tc := range map[string]struct {
		ask   place.Ask
		scene func(s *scene)
		// invalid and repair are empty if there is nothing to repair.
		invalid, repair string
	}{
		"all places are valid": {
			inRack, func(s *scene) { started(s, "a1", 4); started(s, "a2", 2) }, "", ""},
		"the pods of a failed node move within the block": {
			gpus(6, 1, required("block")), func(s *scene) { started(s, "a1", 4); started(s, "a2", 2); s.node("a1", failed) },
			"gang", "b1:4 a2:2, 4 moved"},
		"the rack has no free node": {
			inRack, func(s *scene) { started(s, "a1", 4); started(s, "a2", 2); s.node("a1", failed) }, "gang", "none"},
		"the pods of a deleted node move": {
			inRack, func(s *scene) { started(s, "a1", 4); started(s, "a2", 2); s.DeleteNode("a2"); s.node("a3") }, "gang",
			"a1:4 a3:2, 2 moved"},
		"a cordon moves pods that are not there yet": {
			inRack, func(s *scene) { started(s, "a1", 3); started(s, "a2", 2); s.node("a1", cordoned) }, "gang",
			"a1:3 a2:3, 1 moved"},
		"a cordon does not move pods that are there": {
			inRack, func(s *scene) { started(s, "a1", 4); started(s, "a2", 2); s.node("a1", cordoned) }, "", ""},
		"a taint moves pods that are not there yet": {
			inRack, func(s *scene) {
				started(s, "a1", 3)
				started(s, "a2", 2)
				s.node("a1", tainted(corev1.TaintEffectNoSchedule))
			}, "gang", "a1:3 a2:3, 1 moved"},
		"a node no longer matches the selector": {
			gpus(6, 1, required("rack"), func(a *place.Ask) { a.NodeSelector = map[string]string{"block": "x"} }),
			func(s *scene) { started(s, "a1", 3); started(s, "a2", 2); s.node("a1", labeled("block", "z")) }, "gang", "none"},
		"a node that changed its rack does not move pods that are there": {
			inRack, func(s *scene) { started(s, "a1", 4); started(s, "a2", 2); s.node("a1", labeled("rack", "c")) }, "", ""},
		"a gang without pods moves as a whole if a node changed its rack": {
			inRack, func(s *scene) { s.node("a1", labeled("rack", "c")) }, "gang", "b1:4 b2:2, 6 moved"},
		"if the gang cannot move as a whole, the invalid place is replaced": {
			inRack, func(s *scene) {
				s.node("a2", labeled("rack", "z")).node("a1", has("gpu", 3)).node("a3", has("gpu", 1)).node("b1",
					has("gpu", 1)).node("c1", cordoned).node("c2", cordoned)
			}, "gang", "a1:3 a3:1 a2:2, 1 moved"},
		"if nothing is free, valid places are kept": {
			inRack, func(s *scene) {
				s.node("a1", labeled("rack", "c")).node("b1", has("gpu", 1)).node("c1", cordoned).node("c2", cordoned)
			}, "gang", ", 0 moved"},
		"a preferred rack moves nothing": {
			gpus(6, 1, preferred("rack")), func(s *scene) { s.node("a1", labeled("rack", "c")) }, "", ""},
		"a slice without pods moves if a node changed its rack": {
			gpus(6, 1, sliced("rack", 3)), func(s *scene) { s.node("a1", labeled("rack", "c")) }, "gang", "b1:4 b2:2, 6 moved"},
		"a node was recreated while its pods are there": {
			inRack, func(s *scene) { started(s, "a1", 4); started(s, "a2", 2); s.DeleteNode("a1"); s.node("a1") }, "", ""},
		"a recreated node takes the replacement pods": {
			inRack, func(s *scene) { started(s, "a2", 2); s.DeleteNode("a1"); s.node("a1") }, "", ""},
		"a smaller recreated node takes as many pods as fit": {
			inRack, func(s *scene) {
				started(s, "a1", 1)
				started(s, "a2", 2)
				s.DeleteNode("a1")
				s.node("a1", has("gpu", 3))
			}, "gang", "a1:3 a2:3, 1 moved"},
		"another pod displaces as many as no longer fit": {
			inRack, func(s *scene) { started(s, "a1", 2); started(s, "a2", 2); s.pod("foreign", "a1", 1) }, "gang",
			"a1:3 a2:3, 1 moved"},
		"another pod that leaves enough capacity displaces none": {
			inRack, func(s *scene) { started(s, "a1", 4); s.pod("foreign", "a2", 2) }, "", ""},
		"a node that lost a device": {
			inRack, func(s *scene) { started(s, "a1", 3); started(s, "a2", 2); s.node("a1", has("gpu", 3)) }, "gang",
			"a1:3 a2:3, 1 moved"},
		"a gang that has not started moves to another rack": {
			inRack, func(s *scene) { s.node("a1", failed) }, "gang", "b1:4 b2:2, 6 moved"},
		"an avoided node": {
			gpus(6, 1, required("rack"), func(a *place.Ask) { a.Avoid = []string{"a2"} }), func(s *scene) { s.node("a3") },
			"gang", "a1:4 a3:2, 2 moved"},
		"a slice with pods stays in its rack, another moves": {
			gpus(6, 1, sliced("rack", 4)),
			func(s *scene) { started(s, "a2", 2); s.node("a1", failed).node("a3", has("gpu", 1)) }, "gang",
			"b1:4 a2:2, 4 moved"},
		"the missing pods of a slice stay in its rack": {
			gpus(6, 1, sliced("rack", 3)), func(s *scene) { started(s, "a2", 2); s.node("a1", failed) }, "gang",
			"b1:3 a2:3, 4 moved"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t).hold("gang", tc.ask, "a1:4 a2:2")
			s.TakeInvalid()
			tc.scene(s)
			if got := s.invalid(); got != tc.invalid && len(tc.ask.Avoid) == 0 {
				t.Errorf("invalid places of %q, want %q", got, tc.invalid)
			}
			if tc.invalid == "" {
				return
			}
			if got := s.repair("gang"); got != tc.repair {
				t.Errorf("repair: %s, want %s", got, tc.repair)
			}
			if again := s.invalid(); again != "" {
				t.Errorf("invalid places of %q again though nothing changed", again)
			}
		})
	}
}

// TestScatteredPlacesAreInvalidOnceNoPodIsLeft: the gang's nodes moved to several racks while it ran, and its pods were
// replaced because one was lost. The last pod that ends is not at one of its places.
func TestScatteredPlacesAreInvalidOnceNoPodIsLeft(t *testing.T) {
	s := newScene(t).pod("gang-0", "a1", 1, of("gang", "main")).pod("gang-1", "b1", 1, of("gang", "main"))
	s.hold("gang", gpus(2, 1, required("rack")), "a1:1 b2:1")
	s.DeletePod(key("gang-0"))
	if got := s.invalid(); got != "" {
		t.Errorf("invalid places of %q, want none: a pod of the gang is there", got)
	}
	s.DeletePod(key("gang-1"))
	if got := s.invalid(); got != "gang" {
		t.Fatalf("invalid places of %q, want of gang: no pod of it is there, and its places are in two racks", got)
	}
	if got := s.repair("gang"); got != "a1:2, 1 moved" {
		t.Errorf("repair: %s, want all in one rack", got)
	}
}

// TestALeaderWhoseNodeIsLostMovesAlone: a leader on a1 and its four workers on a2 must be in one rack, and no pod
// exists yet. A deleted node is in no rack, so the workers are not scattered and keep their places, although rack b
// would be a tighter fit for all.
func TestALeaderWhoseNodeIsLostMovesAlone(t *testing.T) {
	for name, lost := range map[string]func(s *scene){
		"deleted": func(s *scene) { s.DeleteNode("a1") },
		"failed":  func(s *scene) { s.node("a1", failed) },
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t).node("a3").node("b2", has("gpu", 1))
			leader, workers := gpus(1, 1, required("rack"), grouped("leader", "g")),
				gpus(4, 1, required("rack"), grouped("workers", "g"))
			s.hold("gang", leader, "a1:1", func(h *place.Holding) {
				h.PodSets = append(h.PodSets, place.HeldPodSet{Ask: workers, Nodes: []place.NodeCount{{Node: "a2", Count: 4}}})
			})
			lost(s)
			if got := s.repair("gang"); got != "a3:1 | a2:4, 1 moved" {
				t.Errorf("repair: %s, want the leader alone on a3", got)
			}
		})
	}
}

// TestARepairKeepsPlacesOfPodsOfAnotherJob: two Jobs of three pods each are on a1 and a2, the first with
// ranks 0 to 2 on a1, the other with rank 3 there. Pods that have not started can no longer use a1.
func TestARepairKeepsPlacesOfPodsOfAnotherJob(t *testing.T) {
	for name, tc := range map[string]struct {
		// on a1 are pods of these Jobs.
		there []int32
		after func(s *scene)
		want  string
	}{
		"the first Job misses a pod": {[]int32{0, 0, 1},
			func(s *scene) { s.node("a1", cordoned) }, "a1:2 a2:1 a1:1 a2:2, 1 moved"},
		"the second Job misses a pod": {[]int32{0, 0, 0},
			func(s *scene) { s.node("a1", cordoned) }, "a1:3 a2:3, 1 moved"},
		"both Jobs miss a pod": {[]int32{0, 0}, func(s *scene) { s.node("a1", cordoned) },
			"a1:2 a2:4, 2 moved"},
		"another pod displaces one": {[]int32{0, 1},
			func(s *scene) { s.pod("foreign", "a1", 1) }, "a1:2 a2:1 a1:1 a2:2, 1 moved"},
		"a failed node loses all": {[]int32{0, 0, 1}, func(s *scene) { s.node("a1", failed) },
			"a3:4 a2:2, 4 moved"},
		"an extra pod of one Job does not replace another Job's": {[]int32{1, 1, 0},
			func(s *scene) { s.node("a1", cordoned) }, "a1:2 a2:1 a1:1 a2:2, 1 moved"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t).node("a3").hold("gang", gpus(6, 1, required("rack")), "a1:4 a2:2")
			for i, index := range tc.there {
				s.pod(fmt.Sprint("a1-", i), "a1", 1, of("gang", "main"), job(index))
			}
			s.pod("a2-0", "a2", 1, of("gang", "main"), job(1)).pod("a2-1", "a2", 1, of("gang", "main"), job(1))
			tc.after(s)
			if got := s.repair("gang"); got != tc.want {
				t.Errorf("repair: %s, want %s", got, tc.want)
			}
		})
	}
}

// TestRanksThatDoNotFollowFromAnIndex: the pods state their ranks, since the Job before theirs has ended.
func TestRanksThatDoNotFollowFromAnIndex(t *testing.T) {
	s := newScene(t).node("a3").hold("gang", gpus(6, 1, required("rack")), "a1:4 a2:2")
	for i, part := range [][2]int32{{0, 2}, {2, 6}, {2, 6}} { // the second pod of the first Job is missing
		s.pod(fmt.Sprint("a1-", i), "a1", 1, of("gang", "main"), ranked(part[0], part[1]))
	}
	s.pod("a2-0", "a2", 1, of("gang", "main"), ranked(2, 6)).pod("a2-1", "a2", 1, of("gang", "main"), ranked(2, 6))
	s.node("a1", cordoned)
	if got, want := s.repair("gang"), "a1:1 a2:1 a1:2 a2:2, 1 moved"; got != want {
		t.Errorf("repair: %s, want %s", got, want)
	}
}

func TestTakeInvalidByState(t *testing.T) {
	s := newScene(t).hold("leaves", gpus(1, 1), "a1:1", leaving).hold("nominated", gpus(1, 1), "a1:1",
		nominated).hold("unknown", gpus(1, 1), "nobody:1")
	s.hold("done", gpus(2, 1), "a1:1 a2:1", func(h *place.Holding) { h.PodSets[0].Ended = 1 })
	if got := s.invalid(); got != "unknown" {
		t.Errorf("invalid places of %q, want of unknown", got)
	}
	s.node("a1", failed)
	if got := s.invalid(); got != "nominated" {
		t.Errorf("invalid places of %q, want of nominated: leaving workloads and ended pods need none", got)
	}
}

// TestASucceededPodNeedsNoPlace: a succeeded pod needs no place, even before its Workload reports it. A deleted pod is
// replaced and needs one.
func TestASucceededPodNeedsNoPlace(t *testing.T) {
	s := newScene(t).hold("gang", gpus(3, 1), "a1:2 a2:1")
	s.pod("gang-0", "a1", 1, of("gang", "main")).pod("gang-1", "a1", 1, of("gang", "main")).pod("gang-2", "a2", 1,
		of("gang", "main"))
	s.node("a1", cordoned)
	set := place.PodSetKey{Workload: key("gang"), PodSet: "main"}
	for _, pod := range []string{"gang-0", "gang-1"} {
		if !s.EndPod(key(pod), set) || s.EndPod(key(pod), set) {
			t.Errorf("the end of %s is not reported as new, or twice", pod)
		}
		if got := s.invalid(); got != "" {
			t.Errorf("invalid places of %q after the end of %s", got, pod)
		}
	}
	s.DeletePod(key("gang-1"))
	if got := s.invalid(); got != "gang" {
		t.Errorf("invalid places of %q, want of gang: the replacement of the deleted pod needs another node", got)
	}
	s.pod("gang-0", "a2", 1, of("gang", "main"))
	if got := s.InvalidNodes(key("gang")); len(got) != 1 || got[0] != "a1" {
		t.Errorf("invalid places on %q, want on a1: the pod of that name runs again", got)
	}
}

// TestARepairStaysInItsDomainIfLayoutsAreDropped: tenants may name any number of labels for exclusive
// placement, and layouts that are built again number their domains differently.
func TestARepairStaysInItsDomainIfLayoutsAreDropped(t *testing.T) {
	s := newScene(t)
	s.find(place.Now, gpus(1, 1, required("rack")))
	for _, name := range []string{"a1", "c1"} {
		s.DeleteNode(name)
	}
	s.node("a1").node("c1").node("a3")
	s.hold("gang", gpus(2, 4, required("rack")), "a1:1 a2:1").pod("gang-1", "a2", 4, of("gang", "main"))
	var asks []place.Ask
	for i := range 64 {
		asks = append(asks, gpus(1, 1, exclusive(fmt.Sprint("label-", i)), grouped(fmt.Sprint("set-", i), "")))
	}
	s.find(place.Now, asks...)
	s.node("a1", failed)
	if got := s.repair("gang"); got != "a3:1 a2:1, 1 moved" {
		t.Errorf("repair: %s, want a place in the same rack", got)
	}
}

// TestPortsOfAPodDoNotConflictWithEachOther: a pod may use a port of all addresses and of one of them.
func TestPortsOfAPodDoNotConflictWithEachOther(t *testing.T) {
	ask := gpus(1, 1)
	ask.HostPorts = []place.HostPort{{Port: 80}, {IP: "10.0.0.1", Port: 80}}
	s := newScene(t).hold("gang", ask, "a1:1")
	if got := s.invalid(); got != "" {
		t.Errorf("invalid places of %q, though no other pod uses a port", got)
	}
	s.pod("other", "a1", 0, func(p *place.Pod) { p.HostPorts = []place.HostPort{{IP: "10.0.0.2", Port: 80}} })
	if got := s.invalid(); got != "gang" {
		t.Errorf("invalid places of %q, want of gang: another pod uses the port on one address", got)
	}
}

// TestPlacesOfPodsThatHaveEnded: the places of ended pods are free once it is known which pods they are.
func TestPlacesOfPodsThatHaveEnded(t *testing.T) {
	s := newScene(t).hold("gang", gpus(3, 4), "a1:1 a2:1 b1:1", func(h *place.Holding) { h.PodSets[0].Ended = 1 })
	room := func(when, want string) {
		t.Helper()
		got := ""
		for _, name := range []string{"a1", "a2", "b1"} {
			if s.FitsAt([]place.Ask{gpus(1, 4)},
				[]place.Assignment{{PodSet: "main", Nodes: []place.NodeCount{{Node: name, Count: 1}}}}, place.Now) {
				got += name + " "
			}
		}
		if strings.TrimSpace(got) != want {
			t.Errorf("%s: free places on %q, want %q", when, got, want)
		}
	}
	room("all places are empty", "")
	s.pod("gang-0", "a1", 4, of("gang", "main"))
	room("either of two may be the ended one", "")
	s.pod("gang-1", "a2", 4, of("gang", "main"))
	room("all others run", "b1")
	s.DeletePod(key("gang-1"))
	room("one of these will be replaced", "")
}

// TestTakeReduced: the result lists only flavors whose nodes could hold less if nothing ran.
func TestTakeReduced(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(s *scene)
		want   string
	}{
		"nothing happened":   {func(*scene) {}, ""},
		"a new pod":          {func(s *scene) { s.pod("new", "a2", 1) }, ""},
		"a new resident pod": {func(s *scene) { s.pod("new", "a2", 1, func(p *place.Pod) { p.Resident = true }) }, "f flat"},
		"a new resident pod with a host port": {func(s *scene) {
			s.pod("new", "a2", 0, func(p *place.Pod) { p.Resident, p.HostPorts = true, []place.HostPort{{Port: 80}} })
		}, "f flat"},
		"a resident pod is deleted": {func(s *scene) { s.DeletePod(key("daemon")) }, ""},
		"a new gang":                {func(s *scene) { s.hold("gang", gpus(2, 1), "b1:2") }, ""},
		"a new node":                {func(s *scene) { s.node("d1") }, ""},
		"a node is deleted":         {func(s *scene) { s.DeleteNode("b1") }, "f flat"},
		"a node is smaller": {func(s *scene) {
			s.node("b1", func(n *place.Node) { n.Allocatable = map[string]int64{place.Pods: 1} })
		}, "f flat"},
		"a node failed": {func(s *scene) {
			s.node("b1", func(n *place.Node) { n.Failed = true })
		}, "f flat"},
		"a node moves to another rack":       {func(s *scene) { s.node("b1", labeled("rack", "c")) }, "f flat"},
		"another node has the same hostname": {func(s *scene) { s.node("c2", labeled(place.Hostname, "a1")) }, "f flat"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t).pod("there", "a1", 1).pod("daemon", "a1", 1, func(p *place.Pod) { p.Resident = true })
			s.TakeReduced()
			tc.change(s)
			if got := strings.Join(s.TakeReduced(), " "); got != tc.want {
				t.Errorf("reduced flavors = %q, want %q", got, tc.want)
			}
		})
	}
}

func TestTakeFreed(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(s *scene)
		want   string
	}{
		"nothing happened": {func(*scene) {}, ""},
		"a new pod":        {func(s *scene) { s.pod("new", "a2", 1) }, ""},
		"a pod is deleted": {func(s *scene) { s.DeletePod(key("there")) }, "f flat"},
		"a pod of a gang is deleted, and keeps its place": {func(s *scene) { s.DeletePod(key("mine")) }, ""},
		"a gang is deleted":                  {func(s *scene) { s.Hold(key("gang"), nil) }, "f flat"},
		"a gang is being evicted":            {func(s *scene) { s.hold("gang", gpus(2, 1), "b1:2", leaving) }, "f flat"},
		"a gang holds the same places again": {func(s *scene) { s.hold("gang", gpus(2, 1), "b1:2") }, ""},
		"a gang is removed in a trial":       {func(s *scene) { s.Try(func() { s.Hold(key("gang"), nil) }) }, ""},
		"a node is less overcommitted": {func(s *scene) {
			s.node("b2", labeled("rack", "b"))
			s.pod("x", "b2", 1000).TakeFreed()
			s.pod("x", "b2", 999)
		}, "f flat"},
		"a new node": {func(s *scene) { s.node("d1") }, "f flat"},
		"another node with the same hostname is deleted": {func(s *scene) {
			s.node("c2", labeled(place.Hostname, "a1"))
			s.TakeFreed()
			s.DeleteNode("c2")
		}, "f flat"},
		"a node is set without a change": {func(s *scene) { s.node("c1") }, ""},
		"a node is no longer cordoned":   {func(s *scene) { s.node("c2") }, "f flat"},
		"an exclusive pod is deleted":    {func(s *scene) { s.DeletePod(key("alone")) }, "f flat"},
		"a flavor changed": {func(s *scene) {
			s.SetFlavor(place.Flavor{Name: "f", Topology: "t", NodeLabels: map[string]string{"rack": "a"}})
		}, "f flat"},
		"a flavor without a topology": {func(s *scene) {
			s.SetFlavor(place.Flavor{Name: "quota"})
			s.TakeFreed()
			s.node("d1")
		}, "f flat"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t).node("c2", cordoned).pod("there", "a1", 1).hold("gang", gpus(2, 1), "b1:2").pod("mine", "b1", 1,
				of("gang", "main"))
			s.pod("alone", "c1", 0, func(p *place.Pod) { p.ExclusiveKey = "rack" })
			s.TakeFreed()
			tc.change(s)
			if got := strings.Join(s.TakeFreed(), " "); got != tc.want {
				t.Errorf("freed flavors = %q, want %q", got, tc.want)
			}
		})
	}
}

// TestFilled: excess pods do not fill the places of a workload.
func TestFilled(t *testing.T) {
	leaves := func(h *place.Holding) { h.PodSets[0].Excess = []place.NodeCount{{Node: "a1", Count: 1}} }
	for name, tc := range map[string]struct {
		scene func(*scene)
		want  bool
	}{
		"its pod exists": {func(s *scene) {
			s.hold("w", gpus(1, 3), "a1:1").pod("p", "a1", 3, of("w", "main"))
		}, true},
		"its pod is absent": {func(s *scene) { s.hold("w", gpus(1, 3), "a1:1") }, false},
		"only an excess pod exists": {func(s *scene) {
			s.hold("w", gpus(1, 2), "b1:1", leaves).pod("p", "a1", 2, of("w", "main"))
		}, false},
		"no workload": {func(*scene) {}, false},
	} {
		s := newScene(t)
		tc.scene(s)
		if got := s.Filled(place.PodSetKey{Workload: key("w"), PodSet: "main"}, "a1"); got != tc.want {
			t.Errorf("%s: Filled = %v, want %v", name, got, tc.want)
		}
	}
}
