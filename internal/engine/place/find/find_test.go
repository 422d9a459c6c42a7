package find

import (
	"fmt"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/engine/place"
	corev1 "k8s.io/api/core/v1"
)

func TestFind(t *testing.T) {
	tolerating := func(a *place.Ask) {
		a.Tolerations = []corev1.Toleration{{Key: "k", Operator: corev1.TolerationOpExists}}
	}
	port := func(a *place.Ask) { a.HostPorts = []place.HostPort{{Port: 80}} }
	flat := func(a *place.Ask) { a.Flavor = "flat" }
	avoiding := func(nodes ...string) func(*place.Ask) { return func(a *place.Ask) { a.Avoid = nodes } }
	for name, tc := range map[string]struct {
		scene func(s *scene)
		asks  []place.Ask
		want  string
	}{
		"a gang fills as few nodes as hold it": {
			nil, []place.Ask{gpus(6, 1)}, "a1:4 a2:2"},
		"a pod prefers a node in use": {
			func(s *scene) { s.pod("p", "b2", 3) }, []place.Ask{gpus(1, 1)}, "b2:1"},
		"a pod prefers the tightest node": {
			func(s *scene) { s.pod("p", "c1", 1) }, []place.Ask{gpus(1, 2)}, "c1:1"},
		"a gang that needs one rack gets the tightest that holds it": {
			func(s *scene) { s.pod("p", "b1", 1) }, []place.Ask{gpus(7, 1, required("rack"))}, "b2:4 b1:3"},
		"a gang that needs one rack and is larger does not fit": {
			nil, []place.Ask{gpus(9, 1, required("rack"))}, `topology "t" allows to fit only 8 out of 9 pod(s). Total nodes: 6`},
		"a gang that prefers one rack is spread over its block": {
			nil, []place.Ask{gpus(9, 1, preferred("rack"))}, "a1:4 a2:4 b1:1"},
		"a gang that prefers one rack is spread over blocks if no block holds it": {
			nil, []place.Ask{gpus(18, 1, preferred("rack"))}, "a1:4 a2:4 b1:4 b2:4 c1:2"},
		"a gang on one host": {
			func(s *scene) { s.pod("p", "a1", 1).pod("q", "c2", 1) }, []place.Ask{gpus(3, 1, required(place.Hostname))}, "a1:3"},
		"a gang is placed completely or not at all": {
			nil, []place.Ask{gpus(25, 1)}, `topology "t" allows to fit only 24 out of 25 pod(s). Total nodes: 6`},
		"each slice lies in one rack, one after the other": {
			nil, []place.Ask{gpus(12, 1, sliced("rack", 6))}, "a1:4 a2:2 b1:4 b2:2"},
		"the last slice may be smaller": {
			nil, []place.Ask{gpus(8, 1, sliced("rack", 6))}, "a1:4 a2:4"},
		"slices of slices": {
			nil, []place.Ask{gpus(12, 1, sliced("block", 6), sliced(place.Hostname, 3))}, "a1:3 a2:3 b1:3 b2:3"},
		"slices that do not nest are a mistake": {
			nil, []place.Ask{gpus(12, 1, sliced("rack", 6), sliced(place.Hostname, 4))},
			"slices of 6 pods cannot be made of slices of 4"},
		"an unknown level is a mistake": {
			nil, []place.Ask{gpus(1, 1, required("row"))}, `topology "t" has no level "row"`},
		"a leader and its workers share a rack": {
			func(s *scene) { s.pod("p", "a1", 1) },
			[]place.Ask{gpus(1, 1, grouped("leader", "g"), required("rack")),
				gpus(7, 1, grouped("workers", "g"), required("rack"))}, "b2:1 | b1:4 b2:3"},
		"a group that must be in one block and in one rack is a mistake": {
			nil, []place.Ask{gpus(1, 1, grouped("leader", "g"), required("block")),
				gpus(9, 1, grouped("workers", "g"), required("rack"))},
			"pod sets of group g must ask for the same level, all of them as required or all as preferred"},
		"a leader without a level is placed with its workers": {
			func(s *scene) { s.pod("p", "a1", 1) },
			[]place.Ask{gpus(1, 1, grouped("leader", "g")), gpus(7, 1, grouped("workers", "g"), required("rack"))},
			"b2:1 | b1:4 b2:3"},
		"pod sets that fit alone but not together": {
			nil, []place.Ask{gpus(5, 4), {PodSet: "other", Flavor: "f", Count: 2, PerPod: map[string]int64{"gpu": 4}}},
			`topology "t" allows to fit each pod set alone, but not all together. Total nodes: 6`},
		"each exclusive part has its own rack": {
			nil, []place.Ask{gpus(4, 1, sliced("rack", 2), exclusive("rack"))}, "a1:2 b1:2"},
		"an exclusive part does not share the rack of another": {
			func(s *scene) {
				s.pod("p", "a1", 1, func(p *place.Pod) { p.ExclusiveKey = "rack" }).pod("q", "b1", 1,
					func(p *place.Pod) { p.ExclusiveKey = "block" })
			}, []place.Ask{gpus(2, 1, exclusive("rack"))}, "c1:2"},
		"pods that are not exclusive may use an exclusive rack": {
			func(s *scene) { s.pod("p", "a1", 1, func(p *place.Pod) { p.ExclusiveKey = "rack" }) },
			[]place.Ask{gpus(3, 1)}, "a1:3"},
		"exclusive by a label that is not a level": {
			nil, []place.Ask{gpus(4, 1, sliced("rack", 2), exclusive("rack"), flat)}, "a1:2 b1:2"},
		"more exclusive parts than racks": {
			nil, []place.Ask{gpus(8, 1, sliced("rack", 2), exclusive("rack"))},
			`topology "t" allows to fit only 6 out of 8 pod(s). Total nodes: 6`},
		"a host port is used once per node": {
			nil, []place.Ask{gpus(2, 1, port)}, "a1:1 a2:1"},
		"a host port of another pod": {
			func(s *scene) {
				s.pod("p", "a1", 0, func(p *place.Pod) { p.HostPorts = []place.HostPort{{IP: "10.0.0.1", Port: 80}} })
			}, []place.Ask{gpus(1, 1, port)}, "a2:1"},
		"pods without requests count as pods": {
			func(s *scene) { s.node("a1", has(place.Pods, 2)) }, []place.Ask{gpus(3, 0, required("rack"))}, "a2:3"},
		"a resource that no node has": {
			nil, []place.Ask{{PodSet: "main", Flavor: "f", Count: 1, PerPod: map[string]int64{"tpu": 1}}},
			`topology "t" doesn't allow to fit any of 1 pod(s). Total nodes: 6; excluded: resource "tpu": 6`},
		"no node has the flavor's labels": {
			func(s *scene) {
				s.SetFlavor(place.Flavor{Name: "f", Topology: "t", NodeLabels: map[string]string{"pool": "a", "gpu": "h100"}})
			}, []place.Ask{gpus(1, 1)},
			`topology "t" doesn't allow to fit any of 1 pod(s). Total nodes: 0; no node has the labels of flavor f: gpu=h100, pool=a`},
		"a request of zero": {
			nil, []place.Ask{{PodSet: "main", Flavor: "f", Count: 1, PerPod: map[string]int64{"tpu": 0}}}, "a1:1"},
		"nodes with devices are left to pods that ask for devices": {
			func(s *scene) { s.node("a1", has("example.com/gpu", 8)) }, []place.Ask{gpus(4, 1)}, "a2:4"},
		"nodes with devices are used if there are no others": {
			func(s *scene) {
				for _, name := range []string{"a1", "a2", "b1", "b2", "c1", "c2"} {
					s.node(name, has("example.com/gpu", 8))
				}
			}, []place.Ask{gpus(4, 1)}, "a1:4"},
		"pods that ask for devices get nodes with devices": {
			func(s *scene) { s.node("b1", has("example.com/gpu", 8)) },
			[]place.Ask{{PodSet: "main", Flavor: "f", Count: 2, PerPod: map[string]int64{"example.com/gpu": 1}}}, "b1:2"},
		"an ask for no pods": {
			nil, []place.Ask{gpus(0, 1)}, ""},
		"nodes are named by their hostname": {
			func(s *scene) { s.node("a1", labeled(place.Hostname, "a1.example")) }, []place.Ask{gpus(1, 1)}, "a1.example:1"},
		"a hostname of two nodes is not used": {
			func(s *scene) { s.node("a1", labeled(place.Hostname, "a2")) },
			[]place.Ask{gpus(8, 1, required("rack"))}, "b1:4 b2:4"},
		"a node without the label of a level is not used": {
			func(s *scene) { s.node("a1", labeled("rack", "")) }, []place.Ask{gpus(8, 1, required("block"))}, "b1:4 b2:4"},
		"a node that no selector for a hostname matches is not used": {
			func(s *scene) {
				s.SetTopology(place.Topology{Name: "t", Levels: []string{"block", "rack"}})
				s.node("a1", labeled(place.Hostname, ""))
			}, []place.Ask{gpus(8, 1, required("rack"))}, "b1:4 b2:4"},
		"a taint repels pods": {
			func(s *scene) { s.node("a1", tainted(corev1.TaintEffectNoSchedule)) }, []place.Ask{gpus(4, 1)}, "a2:4"},
		"a PreferNoSchedule taint does not": {
			func(s *scene) { s.node("a1", tainted(corev1.TaintEffectPreferNoSchedule)) }, []place.Ask{gpus(4, 1)}, "a1:4"},
		"a tolerated taint does not": {
			func(s *scene) { s.node("a1", tainted(corev1.TaintEffectNoExecute)) }, []place.Ask{gpus(4, 1, tolerating)}, "a1:4"},
		"avoided nodes are not used": {
			nil, []place.Ask{gpus(4, 1, avoiding("a1", "nobody"))}, "a2:4"},
		"a rack with two avoided nodes is tried last": {
			func(s *scene) { s.node("a3") }, []place.Ask{gpus(1, 1, avoiding("a1", "a2"))}, "b1:1"},
		"a block with avoided nodes in two racks is tried last": {
			nil, []place.Ask{gpus(1, 1, avoiding("a1", "b1"))}, "c1:1"},
		"a zone with two avoided nodes is tried last though it is not a level": {
			func(s *scene) {
				for _, name := range []string{"a1", "a2", "b1", "b2"} {
					s.node(name, labeled(corev1.LabelTopologyZone, "one"))
				}
			}, []place.Ask{gpus(1, 1, flat, avoiding("a1", "a2"))}, "c1:1"},
		"the rest of the block is used if there is no other": {
			func(s *scene) { s.pod("p", "c1", 4).pod("q", "c2", 4) }, []place.Ask{gpus(1, 1, avoiding("a1", "b1"))}, "a2:1"},
		"within the block, a rack without avoided nodes comes first": {
			func(s *scene) { s.node("a3").pod("p", "c1", 4).pod("q", "c2", 4) },
			[]place.Ask{gpus(1, 1, avoiding("a1", "a2", "b1"))}, "b2:1"},
		"the rest of the rack is used if there is no other": {
			func(s *scene) { s.node("a3").pod("p", "c1", 4).pod("q", "c2", 4).pod("r", "b2", 4) },
			[]place.Ask{gpus(1, 1, avoiding("a1", "a2", "b1"))}, "a3:1"},
		"nodes are counted by what excludes them": {
			func(s *scene) {
				s.node("a1", cordoned).node("a2", failed).node("b1", tainted(corev1.TaintEffectNoSchedule)).node("b2",
					labeled("pool", "other")).pod("p", "c1", 4).node("c2", has(place.Pods, -1))
			}, []place.Ask{gpus(1, 1, func(a *place.Ask) { a.NodeSelector = map[string]string{"block": "x", "rack": "c"} })},
			`topology "t" doesn't allow to fit any of 1 pod(s). Total nodes: 6; excluded: nodeSelector: 4, not ready: 1, taint "k=v:NoSchedule": 1`},
		"nodes are counted by the resource of which they are short": {
			func(s *scene) {
				s.pod("p", "c1", 4).node("c2", has(place.Pods, -1)).pod("q", "a1", 4).pod("r", "a2", 4)
			}, []place.Ask{gpus(4, 2, required("rack"), func(a *place.Ask) { a.NodeSelector = map[string]string{"rack": "c"} })},
			`topology "t" doesn't allow to fit any of 4 pod(s). Total nodes: 6; excluded: nodeSelector: 4, resource "gpu": 1, resource "pods": 1`},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			if tc.scene != nil {
				tc.scene(s)
			}
			if got := s.find(place.Now, tc.asks...); got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}

func TestLedgers(t *testing.T) {
	whole := gpus(2, 4, required("rack"))
	for name, tc := range map[string]struct {
		scene        func(s *scene)
		now, planned string
	}{
		"held places are used": {
			func(s *scene) { s.hold("w", whole, "a1:1 a2:1") }, "b1:1 b2:1", "b1:1 b2:1"},
		"pods at held places are not counted again": {
			func(s *scene) {
				s.hold("w", gpus(3, 1), "a1:3").pod("p", "a1", 1, of("w", "main")).hold("v", gpus(1, 1), "a1:1")
			}, "b1:1 b2:1", "b1:1 b2:1"},
		"nominated places are used": {
			func(s *scene) { s.hold("w", whole, "a1:1 a2:1", nominated) }, "b1:1 b2:1", "b1:1 b2:1"},
		"places of an evicted workload are used until its pods are gone": {
			func(s *scene) { s.hold("w", whole, "a1:1 a2:1", leaving).pod("p", "a1", 4, of("w", "main")) },
			"b1:1 b2:1", "a1:1 a2:1"},
		"places of an evicted workload that are nominated for another are used": {
			func(s *scene) { s.hold("w", whole, "a1:1 a2:1", leaving).hold("v", whole, "a1:1 a2:1", nominated) },
			"b1:1 b2:1", "b1:1 b2:1"},
		"a place on an unknown node uses nothing": {
			func(s *scene) { s.hold("w", whole, "nobody:2") }, "a1:1 a2:1", "a1:1 a2:1"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			tc.scene(s)
			if now, planned := s.find(place.Now, whole), s.find(place.Planned, whole); now != tc.now || planned != tc.planned {
				t.Errorf("got %s and %s, want %s and %s", now, planned, tc.now, tc.planned)
			}
		})
	}
}

func TestDiagnose(t *testing.T) {
	for name, tc := range map[string]struct {
		scene      func(s *scene)
		ask        place.Ask
		best       string
		relaxation string
	}{
		"a wider level helps": {
			nil, gpus(9, 1, required("rack")), "rack x a: 8, gpu", `pod set "main" within one block rather than one rack`},
		"a preferred level helps": {
			nil, gpus(17, 1, required("block")), "block x: 16, gpu", `pod set "main" within one block preferred, not required`},
		"a toleration helps": {
			func(s *scene) {
				for _, name := range []string{"a1", "a2", "b1", "b2"} {
					s.node(name, tainted(corev1.TaintEffectNoSchedule))
				}
			}, gpus(9, 1), " : 8, gpu", `pod set "main" tolerating taint "k=v:NoSchedule"`},
		"no toleration of one taint helps where others have its key": {
			func(s *scene) {
				for name, value := range map[string]string{"a1": "v", "a2": "v", "b1": "w", "b2": "w"} {
					s.node(name, func(n *place.Node) {
						n.Taints = []corev1.Taint{{Key: "k", Value: value, Effect: corev1.TaintEffectNoSchedule}}
					})
				}
			}, gpus(17, 1), " : 8, gpu", `pod set "main" with 8 pods rather than 17`},
		"no node affinity, but the label for the job": {
			nil, gpus(5, 1, choosing("zone", "z"), labeledFor(place.Hostname, "a1")), "", ""},
		"no node selector of the pods, but of another flavor": {
			nil, gpus(5, 1, func(a *place.Ask) {
				a.NodeSelector = map[string]string{place.Hostname: "a1"}
				a.OtherLabels = a.NodeSelector
			}), " : 4, gpu", `pod set "main" with 4 pods rather than 5`},
		"no slices help": {
			func(s *scene) { s.node("a1", cordoned).node("b1", cordoned).node("c1", cordoned) }, gpus(6, 1, sliced("rack", 6)),
			"", `pod set "main" without slices`},
		"exclusive placement by a label that no node has": {
			nil, gpus(2, 1, exclusive("no"), sliced("no", 1)), "", `pod set "main" without exclusive placement by no`},
		"a node selector": {
			nil, gpus(5, 1, func(a *place.Ask) { a.NodeSelector = map[string]string{place.Hostname: "a1"} }), " : 4, gpu",
			`pod set "main" without nodeSelector`},
		"too few nodes are labeled for the job": {
			nil, gpus(5, 1, labeledFor(place.Hostname, "a1")), " : 4, gpu",
			`pod set "main" with more nodes labelled kubernetes.io/hostname for its Job`},
		"a node affinity besides the label for the job": {
			nil, gpus(3, 1, choosing("zone", "z"), labeledFor(place.Hostname, "a1")), "",
			`pod set "main" without node affinity`},
		"a nodeName": {
			nil, gpus(5, 1, func(a *place.Ask) { a.NodeName = "a1" }), " : 4, gpu", `pod set "main" without nodeName`},
		"a required node field": {
			nil, gpus(5, 1, func(a *place.Ask) {
				a.Affinity = &corev1.NodeAffinity{
					RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
						MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn,
							Values: []string{"a1"}}}}}}}
			}), " : 4, gpu", `pod set "main" without node affinity`},
		"too few exclusive domains, but enough resources": {
			nil, gpus(3, 1, required("block"), exclusive("rack"), sliced("rack", 1)), "block x: 2, ",
			`pod set "main" within one block preferred, not required`},
		"too few host ports, but enough resources": {
			nil, gpus(3, 1, required("rack"), func(a *place.Ask) { a.HostPorts = []place.HostPort{{Port: 80}} }),
			"rack x a: 2, ", `pod set "main" within one block rather than one rack`},
		"a smaller request helps": {
			func(s *scene) { s.node("a1", has("gpu", 3000)).node("a2", cordoned) }, gpus(1, 4000), "",
			`pod set "main" with 3000 gpu for each pod rather than 4000`},
		"fewer pods fit": {
			nil, gpus(25, 1), " : 24, gpu", `pod set "main" with 24 pods rather than 25`},
		"smaller pods fit": {
			nil, gpus(1, 6), "", `pod set "main" with 4 gpu for each pod rather than 6`},
		"the nodes are full, and a pod without any gpu would be another job": {
			func(s *scene) {
				for _, name := range []string{"a1", "a2", "b1", "b2", "c1", "c2"} {
					s.pod("on-"+name, name, 4)
				}
			}, gpus(1, 1), "", ""},
		"nothing helps": {
			func(s *scene) {
				for _, name := range []string{"a1", "a2", "b1", "b2", "c1", "c2"} {
					s.node(name, cordoned)
				}
			}, gpus(1, 1), "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			if tc.scene != nil {
				tc.scene(s)
			}
			d := s.Diagnose([]place.Ask{tc.ask})
			if len(d.PodSets) != 1 {
				t.Fatalf("diagnosis of %d pod sets, want 1: %+v", len(d.PodSets), d)
			}
			best := ""
			if b := d.PodSets[0].Best; b != nil {
				best = fmt.Sprintf("%s %s: %d, %s", b.Level, strings.Join(b.Values, " "), b.Fits, b.Resource)
				if b.Fits+b.Lacks != tc.ask.Count {
					t.Errorf("%d pods fit and %d do not, want a sum of %d", b.Fits, b.Lacks, tc.ask.Count)
				}
			}
			if best != tc.best || d.Relaxation != tc.relaxation {
				t.Errorf("best %q, want %q; relaxation %q, want %q", best, tc.best, d.Relaxation, tc.relaxation)
			}
		})
	}
}

// TestNodesNotLabeledForTheJobAreCountedByLabel: the message names the label, since the author of the job wrote no
// affinity.
func TestNodesNotLabeledForTheJobAreCountedByLabel(t *testing.T) {
	const want = `topology "t" doesn't allow to fit any of 1 pod(s). Total nodes: 6; excluded: label "for": 6`
	if got := newScene(t).find(place.Now, gpus(1, 1, labeledFor("for", "js-0", "js-1"))); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestARelaxationNamesAllPodSetsOfAGroup: pod sets of a group share a domain, so the level of one alone cannot change.
func TestARelaxationNamesAllPodSetsOfAGroup(t *testing.T) {
	s := newScene(t)
	d := s.Diagnose([]place.Ask{gpus(1, 1, required("rack"), grouped("leader", "g")),
		gpus(2, 4, required("rack"), grouped("workers", "g"))})
	if want := `pod sets "leader", "workers" within one block rather than one rack`; d.Relaxation != want {
		t.Errorf("relaxation = %q, want %q", d.Relaxation, want)
	}
}

func TestEverFits(t *testing.T) {
	s := newScene(t).pod("p", "a1", 4).node("a2", cordoned).pod("daemon", "b1", 1,
		func(p *place.Pod) { p.Resident = true }).node("b2", failed)
	on := func(name string) place.Ask {
		return gpus(1, 4, func(a *place.Ask) { a.NodeSelector = map[string]string{place.Hostname: name} })
	}
	for name, want := range map[string]bool{"a1": true, "a2": true, "b1": false, "b2": false} {
		if got := s.EverFits([]place.Ask{on(name)}); got != want {
			t.Errorf("EverFits on %s = %v, want %v", name, got, want)
		}
	}
	refused := on("a1")
	refused.Avoid = []string{"a1"}
	if !s.EverFits([]place.Ask{refused}) {
		t.Error("want an avoided node to count")
	}
}

// TestCachesAreBounded: a thousand different asks leave only a bounded number of entries.
func TestCachesAreBounded(t *testing.T) {
	s := newScene(t)
	for i := range 1000 {
		label := fmt.Sprint("label-", i)
		ask := gpus(1, 1, exclusive(label), func(a *place.Ask) { a.NodeSelector = map[string]string{label: "x"} })
		s.node("a1", labeled(label, "x"))
		if got := s.find(place.Now, ask); got != "a1:1" {
			t.Fatalf("places = %s, want a1:1", got)
		}
	}
	if len(s.tallies.byKey) > mostTallies {
		t.Errorf("%d tallies are cached, want at most %d", len(s.tallies.byKey), mostTallies)
	}
}
