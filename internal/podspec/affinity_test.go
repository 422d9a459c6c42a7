package podspec

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
)

func TestNodeAffinityIsBounded(t *testing.T) {
	values := func(n int) (out []string) {
		for i := range n {
			out = append(out, fmt.Sprint("n", i))
		}
		return out
	}
	in := func(key string, n int) corev1.NodeSelectorRequirement {
		return corev1.NodeSelectorRequirement{Key: key, Operator: corev1.NodeSelectorOpIn, Values: values(n)}
	}
	term := func(expressions ...corev1.NodeSelectorRequirement) corev1.NodeSelectorTerm {
		return corev1.NodeSelectorTerm{MatchExpressions: expressions}
	}
	exists := corev1.NodeSelectorRequirement{Key: "x", Operator: corev1.NodeSelectorOpExists}
	byName := corev1.NodeSelectorTerm{MatchFields: []corev1.NodeSelectorRequirement{in("metadata.name", 1)}}
	for name, tc := range map[string]struct {
		terms []corev1.NodeSelectorTerm
		want  string
	}{
		"no terms":                {nil, ""},
		"as many terms as may be": {slices.Repeat([]corev1.NodeSelectorTerm{term(in("a", 1))}, 256), ""},
		"one term more": {slices.Repeat([]corev1.NodeSelectorTerm{term(in("a", 1))}, 257),
			"257: must have at most 256 terms"},
		"one term more, by name": {slices.Repeat([]corev1.NodeSelectorTerm{byName}, 257),
			"257: must have at most 256 terms"},
		"as many as may be": {
			[]corev1.NodeSelectorTerm{term(slices.Repeat([]corev1.NodeSelectorRequirement{exists}, 512)...)}, ""},
		"one expression more": {[]corev1.NodeSelectorTerm{byName,
			term(slices.Repeat([]corev1.NodeSelectorRequirement{exists}, 512)...)}, "513: must have at most 512 expressions"},
		"as many values as may be": {[]corev1.NodeSelectorTerm{term(in("a", 4000)), term(in("b", 96))}, ""},
		"one value more": {[]corev1.NodeSelectorTerm{term(in("a", 4000)), term(in("b", 97))},
			"4097: must have at most 4096 values"},
		"nodes of the Jobs of a JobSet": {[]corev1.NodeSelectorTerm{term(in(jobset.NamespacedJobKey, 50_000))}, ""},
	} {
		spec := podOf(with(nil, nil))
		spec.Affinity = &corev1.Affinity{
			NodeAffinity: &corev1.NodeAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: tc.terms}}}
		want := tc.want
		if want != "" {
			want = "resources validation failed: spec.podSets[0].template.spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution: Too many: " +
				want + ` (pod set "workers"; give the nodes a label, and select that)`
		}
		if got := messageFor(Environment{}, &spec); got != want {
			t.Errorf("%s:\ngot  %s\nwant %s", name, got, want)
		}
	}
}
