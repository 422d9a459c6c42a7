package find

import (
	"fmt"
	"testing"

	"github.com/musterhq/muster/internal/engine/place"
)

// TestLabelsThatNothingUsesAreForgotten: tenants may name any label, on pods and in jobs that come and go.
func TestLabelsThatNothingUsesAreForgotten(t *testing.T) {
	s := newScene(t)
	for i := range 1000 {
		label := fmt.Sprint("label-", i)
		s.pod("p", "a1", 1, func(p *place.Pod) { p.ExclusiveKey = label }).DeletePod(key("p"))
		s.hold("gang", gpus(1, 1, exclusive(label)), "b1:1")
		s.Hold(key("gang"), nil)
		s.find(place.Now, gpus(1, 1, exclusive(label)))
	}
	tracked := func() (out int) {
		for i := range 1000 {
			if s.Exclusive.Tracks(fmt.Sprint("label-", i)) {
				out++
			}
		}
		return out
	}
	if got := tracked(); got > mostUnusedLabels+2 {
		t.Errorf("%d labels are tracked, want at most %d", got, mostUnusedLabels+2)
	}
	s.Exclusive.Forget(0)
	if got := tracked(); got > 0 {
		t.Errorf("%d labels count as used, want none", got)
	}
}

// TestAForgottenLabelIsCountedAgain: what is exclusive by another label counts when a label is asked for again, also if
// it came or went meanwhile, on another node of the domain. Labels that are used stay.
func TestAForgottenLabelIsCountedAgain(t *testing.T) {
	ask := gpus(1, 1, exclusive("rack"), func(a *place.Ask) { a.NodeSelector = map[string]string{place.Hostname: "a2"} })
	comes := func(s *scene) { s.pod("there", "a1", 1, func(p *place.Pod) { p.ExclusiveKey = place.Hostname }) }
	for name, tc := range map[string]struct {
		before, meanwhile func(s *scene)
		was, is           bool
	}{
		"a pod is there":   {comes, func(*scene) {}, false, false},
		"a pod comes":      {func(*scene) {}, comes, true, false},
		"a pod goes":       {comes, func(s *scene) { s.DeletePod(key("there")) }, false, true},
		"nothing is there": {func(*scene) {}, func(*scene) {}, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			for i := range 1000 { // so many that no change makes all of them be counted again
				s.node(fmt.Sprint("z", i))
			}
			tc.before(s)
			if got := s.Fits([]place.Ask{ask}, place.Now); got != tc.was {
				t.Errorf("the pod fits before = %v, want %v", got, tc.was)
			}
			for i := range mostUnusedLabels + 1 {
				s.pod("other", "c1", 1, func(p *place.Pod) { p.ExclusiveKey = fmt.Sprint("label-", i) })
			}
			s.DeletePod(key("other"))
			s.find(place.Now, gpus(1, 1))
			if s.Exclusive.Tracks("rack") || !tc.was && !s.Exclusive.Tracks(place.Hostname) {
				t.Error("want rack forgotten, and the hostname not while a pod is exclusive by it")
			}
			tc.meanwhile(s)
			if got := s.Fits([]place.Ask{ask}, place.Now); got != tc.is {
				t.Errorf("the pod fits after = %v, want %v", got, tc.is)
			}
		})
	}
}

// TestAForgottenLabelIsNoReasonToWaitForEver: jobs may wait for a domain of a label that was forgotten since, on
// another node than the one that an exclusive pod leaves, or for a pod that takes no capacity.
func TestAForgottenLabelIsNoReasonToWaitForEver(t *testing.T) {
	s := newScene(t).pod("there", "a1", 0, func(p *place.Pod) { p.ExclusiveKey, p.Requests = place.Hostname, nil })
	for i := range mostUnusedLabels + 1 {
		s.pod("other", "c1", 1, func(p *place.Pod) { p.ExclusiveKey = fmt.Sprint("label-", i) })
	}
	s.DeletePod(key("other"))
	// in no flavor's topology
	s.node("a1", func(n *place.Node) { n.Labels = map[string]string{"rack": "a", place.Hostname: "a1"} })
	s.find(place.Now, gpus(1, 1))
	s.SetFlavor(place.Flavor{Name: "f", Topology: "t", NodeLabels: map[string]string{"block": "x"}})
	s.SetFlavor(place.Flavor{Name: "flat", Topology: "flat", NodeLabels: map[string]string{"block": "x"}})
	s.TakeFreed()
	before := s.Changes()
	s.DeletePod(key("there"))
	if got := s.TakeFreed(); len(got) != 2 || s.Changes() == before {
		t.Errorf("freed flavors = %v, changed = %v, want both flavors and a change", got, s.Changes() != before)
	}
}

// TestAForgottenLabelIsKnownAgainOncePlacesUseIt: the places of a job may be exclusive by it long after the job got
// them.
func TestAForgottenLabelIsKnownAgainOncePlacesUseIt(t *testing.T) {
	s := newScene(t).hold("gang", gpus(1, 1, exclusive("rack")), "a3:1")
	s.forgetExclusive(0)
	s.node("a3") // so far nothing was charged to it
	if s.Fits([]place.Ask{gpus(1, 1, exclusive(place.Hostname),
		func(a *place.Ask) { a.NodeSelector = map[string]string{"rack": "a"} })}, place.Now) {
		t.Error("an exclusive pod fits in the rack that the gang has to itself")
	}
}

// TestDomainsThatPodsHaveToThemselves: the nodes of a domain are open to exclusive pods again whatever happened first:
// its pods go, its nodes are relabelled, or nodes join it.
func TestDomainsThatPodsHaveToThemselves(t *testing.T) {
	alone := func(p *place.Pod) { p.ExclusiveKey = "block" }
	on := func(name string) place.Ask {
		return gpus(1, 1, exclusive("rack"), func(a *place.Ask) { a.NodeSelector = map[string]string{place.Hostname: name} })
	}
	s := newScene(t).pod("there", "a1", 1, alone)
	want := func(when string, open ...string) {
		t.Helper()
		fits := map[string]bool{}
		for _, name := range open {
			fits[name] = true
		}
		for _, name := range []string{"a2", "b1", "c1"} {
			if got := s.Fits([]place.Ask{on(name)}, place.Now); got != fits[name] {
				t.Errorf("%s: exclusive pods fit on %s = %v, want %v", when, name, got, fits[name])
			}
		}
	}
	want("a pod has block x", "c1")
	s.node("b1", labeled("block", "y"))
	want("b1 is in block y now", "b1", "c1")
	s.node("a1", labeled("block", "y"))
	want("the pod's node is in block y now")
	s.pod("there", "a2", 1, alone)
	want("the pod is in block x again", "b1", "c1")
	s.DeleteNode("a2")
	s.node("a2")
	want("its node was recreated", "b1", "c1")
	s.DeletePod(key("there"))
	want("the pod is gone", "a2", "b1", "c1")
}

// TestOnlyPodsOfAnAdmittedJobHaveADomainToThemselves: any user may write on any pod that it is exclusive by any label.
func TestOnlyPodsOfAnAdmittedJobHaveADomainToThemselves(t *testing.T) {
	claims := func(s *scene, changes ...func(*place.Pod)) {
		of := func(p *place.Pod) { p.PodSet, p.ExclusiveKey = "main", "block" } // even without a workload
		s.pod("there", "a1", 0, append([]func(*place.Pod){of}, changes...)...)
	}
	ask := gpus(1, 1, exclusive("rack"), func(a *place.Ask) { a.NodeSelector = map[string]string{place.Hostname: "b1"} })
	alone := gpus(1, 1, exclusive("block"))
	for name, tc := range map[string]struct {
		scene func(s *scene)
		fits  bool
	}{
		"no workload":                  {func(s *scene) { claims(s) }, true},
		"a workload that is not known": {func(s *scene) { claims(s, of("w", "main")) }, true},
		"a workload that holds no places": {func(s *scene) {
			s.hold("w", alone, "").Hold(key("w"), nil)
			claims(s, of("w", "main"))
		}, true},
		"a workload for which some are nominated": {func(s *scene) {
			s.hold("w", alone, "", nominated)
			claims(s, of("w", "main"))
		}, true},
		"a workload that shares its places": {func(s *scene) {
			s.hold("w", gpus(1, 1), "c1:1")
			claims(s, of("w", "main"))
		}, true},
		"a workload that is exclusive by another label": {
			func(s *scene) { s.hold("w", gpus(1, 1, exclusive(place.Hostname)), "c1:1"); claims(s, of("w", "main")) }, true},
		"another pod set": {func(s *scene) {
			s.hold("w", alone, "")
			claims(s, of("w", "other"))
		}, true},
		"a workload that is so": {func(s *scene) {
			s.hold("w", alone, "")
			claims(s, of("w", "main"))
		}, false},
		"a workload that is so later": {func(s *scene) {
			claims(s, of("w", "main"))
			s.hold("w", alone, "")
		}, false},
		"a workload that is so and being evicted": {func(s *scene) {
			s.hold("w", alone, "", leaving)
			claims(s, of("w", "main"))
		}, false},
		"a workload that is so no more": {
			func(s *scene) { s.hold("w", alone, ""); claims(s, of("w", "main")); s.Hold(key("w"), nil) }, true},
		"a workload that is so in a trial": {func(s *scene) {
			claims(s, of("w", "main"))
			s.Try(func() { s.hold("w", alone, "") })
		}, true},
		"a workload that is not so in a trial": {func(s *scene) {
			s.hold("w", alone, "")
			claims(s, of("w", "main"))
			s.Try(func() { s.Hold(key("w"), nil) })
		}, false},
	} {
		s := newScene(t)
		tc.scene(s)
		if got := s.Fits([]place.Ask{ask}, place.Now); got != tc.fits {
			t.Errorf("a pod of %s: an exclusive pod fits in the block = %v, want %v", name, got, tc.fits)
		}
		s.Hold(key("w"), nil)
		s.DeletePod(key("there"))
		s.Exclusive.Forget(0)
		if s.Exclusive.Tracks(ask.ExclusiveKey) || s.Exclusive.Tracks(alone.ExclusiveKey) {
			t.Errorf("a pod of %s leaves an exclusive domain behind", name)
		}
	}
}

// BenchmarkExclusiveLabelsOfTenants places a gang of a new shape beside pods that are exclusive by many labels.
func BenchmarkExclusiveLabelsOfTenants(b *testing.B) {
	for _, labels := range []int{0, 1000} {
		b.Run(fmt.Sprint(labels, " labels"), func(b *testing.B) {
			m := benchMap("block", "rack", place.Hostname)
			for i := range labels {
				of := key(fmt.Sprint("tenant-", i))
				m.Hold(of,
					&place.Holding{PodSets: []place.HeldPodSet{{Ask: place.Ask{PodSet: "main", Flavor: "f",
						ExclusiveKey: fmt.Sprint("x/", i)}}}})
				m.SetPod(place.Pod{Key: of, Workload: of, PodSet: "main", Node: fmt.Sprintf("node-%05d", i),
					ExclusiveKey: fmt.Sprint("x/", i)})
			}
			cpu := int64(1000)
			for b.Loop() {
				cpu++
				gang := benchGang(480, 1, cpu)
				gang.Slices, gang.ExclusiveKey = []place.Slice{{Level: "rack", Size: 48}}, "rack"
				findOne(b, m, gang, true)
			}
		})
	}
}
