package flavor

import (
	"bytes"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"github.com/musterhq/muster/internal/engine/quota"
)

func taint(key string, effect corev1.TaintEffect) corev1.Taint {
	return corev1.Taint{Key: key, Value: "yes", Effect: effect}
}

func tolerates(key string) []corev1.Toleration {
	return []corev1.Toleration{{Key: key, Operator: corev1.TolerationOpExists}}
}

// in requires one of the values of a label.
func in(key string, values ...string) corev1.NodeSelectorRequirement {
	return corev1.NodeSelectorRequirement{Key: key, Operator: corev1.NodeSelectorOpIn, Values: values}
}

// requires returns an affinity for nodes that meet one of the terms.
func requires(terms ...[]corev1.NodeSelectorRequirement) *corev1.NodeAffinity {
	selector := &corev1.NodeSelector{}
	for _, term := range terms {
		selector.NodeSelectorTerms = append(selector.NodeSelectorTerms, corev1.NodeSelectorTerm{MatchExpressions: term})
	}
	return &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: selector}
}

type term = []corev1.NodeSelectorRequirement

// TestFirstFlavorIsTakenIfItSuitsThePods: of two flavors with quota, the first is assigned, or is refused with a
// message and the second is assigned.
func TestFirstFlavorIsTakenIfItSuitsThePods(t *testing.T) {
	labels := func(f *Flavor, pairs map[string]string) { f.NodeLabels = pairs }
	spot := map[string]string{"type": "spot"}
	const noMatch = "flavor first doesn't match node affinity"
	for name, tc := range map[string]struct {
		flavors func(first, second *Flavor)
		pods    PodSet
		refusal string
	}{
		"an untolerated taint": {
			flavors: func(f, _ *Flavor) { f.NodeTaints = []corev1.Taint{taint("spot", corev1.TaintEffectNoSchedule)} },
			refusal: "untolerated taint {spot yes NoSchedule <nil>} in flavor first"},
		"an untolerated NoExecute taint": {
			flavors: func(f, _ *Flavor) { f.NodeTaints = []corev1.Taint{taint("spot", corev1.TaintEffectNoExecute)} },
			refusal: "untolerated taint {spot yes NoExecute <nil>} in flavor first"},
		"a PreferNoSchedule taint": {
			flavors: func(f, _ *Flavor) {
				f.NodeTaints = []corev1.Taint{taint("spot", corev1.TaintEffectPreferNoSchedule)}
			}},
		"a toleration of the pods": {
			flavors: func(f, _ *Flavor) { f.NodeTaints = []corev1.Taint{taint("spot", corev1.TaintEffectNoSchedule)} },
			pods:    PodSet{Tolerations: tolerates("spot")}},
		"a toleration of the flavor": {
			flavors: func(f, _ *Flavor) {
				f.NodeTaints, f.Tolerations = []corev1.Taint{taint("spot", corev1.TaintEffectNoSchedule)}, tolerates("spot")
			}},
		"two taints and one toleration": {
			flavors: func(f, _ *Flavor) {
				f.NodeTaints = []corev1.Taint{taint("spot", corev1.TaintEffectNoSchedule),
					taint("gpu", corev1.TaintEffectNoSchedule)}
			},
			pods:    PodSet{Tolerations: tolerates("spot")},
			refusal: "untolerated taint {gpu yes NoSchedule <nil>} in flavor first"},
		"a selector for its label": {
			flavors: func(f, _ *Flavor) { labels(f, spot) }, pods: PodSet{NodeSelector: map[string]string{"type": "spot"}}},
		"a selector for another value of its label": {
			flavors: func(f, _ *Flavor) { labels(f, spot) }, pods: PodSet{NodeSelector: map[string]string{"type": "reserved"}},
			refusal: noMatch},
		"a selector for a label that no flavor has": {
			flavors: func(f, _ *Flavor) { labels(f, spot) }, pods: PodSet{NodeSelector: map[string]string{"zone": "a"}}},
		"a selector for a label of another flavor only": {
			flavors: func(f, s *Flavor) { labels(f, spot); labels(s, map[string]string{"zone": "a"}) },
			pods:    PodSet{NodeSelector: map[string]string{"zone": "a"}}},
		"no selector": {
			flavors: func(f, _ *Flavor) { labels(f, spot) }},
		"an affinity for its label": {
			flavors: func(f, _ *Flavor) { labels(f, spot) },
			pods:    PodSet{Affinity: requires(term{in("type", "spot", "reserved")})}},
		"an affinity for another value": {
			flavors: func(f, _ *Flavor) { labels(f, spot) }, pods: PodSet{Affinity: requires(term{in("type", "reserved")})},
			refusal: noMatch},
		"a term with requirements on other labels": {
			flavors: func(f, _ *Flavor) { labels(f, spot) },
			pods:    PodSet{Affinity: requires(term{in("type", "reserved"), in("zone", "a")})}, refusal: noMatch},
		"two terms": {
			flavors: func(f, _ *Flavor) { labels(f, spot) },
			pods:    PodSet{Affinity: requires(term{in("type", "reserved")}, term{in("type", "spot")})}},
		"a term on other labels only": {
			flavors: func(f, _ *Flavor) { labels(f, spot) },
			pods:    PodSet{Affinity: requires(term{in("type", "reserved")}, term{in("zone", "a")})}},
		"a selector and an affinity": {
			flavors: func(f, _ *Flavor) { labels(f, spot) },
			pods:    PodSet{NodeSelector: map[string]string{"type": "spot"}, Affinity: requires(term{in("type", "reserved")})},
			refusal: noMatch},
		"a preferred affinity": {
			flavors: func(f, _ *Flavor) { labels(f, spot) },
			pods: PodSet{Affinity: &corev1.NodeAffinity{
				PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{{
					Weight: 1, Preference: corev1.NodeSelectorTerm{MatchExpressions: term{in("type", "reserved")}}}}}}},
	} {
		t.Run(name, func(t *testing.T) {
			first, second := of("first", 4), of("second", 4)
			tc.flavors(&first.Flavor, &second.Flavor)
			tc.pods.Name, tc.pods.Count, tc.pods.PerPod = "main", 1, map[string]int64{"cpu": 1}
			got := newTestQueue(first, second).assign(tc.pods)
			if tc.refusal == "" {
				if want := "fits: main 1 cpu=1 of first"; line(got) != want {
					t.Errorf("choice = %s, want %s", line(got), want)
				}
				return
			}
			if want := "fits: main 1 cpu=1 of second"; line(got) != want {
				t.Errorf("choice = %s, want %s", line(got), want)
			}
			alone := newTestQueue(first).assign(tc.pods)
			if want := "couldn't assign flavors to pod set main: " + tc.refusal; alone.Why.Message() != want {
				t.Errorf("reason without a second flavor = %q, want %q", alone.Why.Message(), want)
			}
		})
	}
}

func TestMissingFlavorIsNamed(t *testing.T) {
	got := NewForm([]PodSet{podSet("main", 1, "cpu", 1)},
		Offer{Groups: []Group{{Resources: []string{"cpu"}, Flavors: []string{"gone"}}}}, &quota.Tree{}).
		Assign([]int32{1}, Question{})
	if want := "couldn't assign flavors to pod set main: flavor gone not found"; got.Why.Message() != want {
		t.Errorf("reason = %q, want %q", got.Why.Message(), want)
	}
}

// A taint of a flavor that is no number must not be logged for each toleration with Gt or Lt.
func TestTolerationsOfManyNumbersLogNothing(t *testing.T) {
	var out bytes.Buffer
	klog.LogToStderr(false)
	klog.SetOutput(&out)
	defer klog.LogToStderr(true)
	f := Flavor{Name: "f", NodeTaints: []corev1.Taint{taint("gpu", corev1.TaintEffectNoSchedule)}}
	for _, operator := range []corev1.TolerationOperator{corev1.TolerationOpGt, corev1.TolerationOpLt} {
		var ps PodSet
		for _, value := range []string{"1", "2", "x"} {
			ps.Tolerations = append(ps.Tolerations, corev1.Toleration{Key: "gpu", Operator: operator, Value: value})
		}
		if why := refuses(f, ps); why != "untolerated taint {gpu yes NoSchedule <nil>} in flavor f" {
			t.Errorf("%s: refused because of %q", operator, why)
		}
	}
	if klog.Flush(); out.Len() > 0 {
		t.Errorf("it logs %s", &out)
	}
}
