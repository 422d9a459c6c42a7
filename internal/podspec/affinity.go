package podspec

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
	"github.com/musterhq/muster/internal/pointers"
)

// These bound the required node affinity of pods, which is matched with each node of the cluster, for each shape of
// pods: 15,000 terms on 5,000 nodes take seconds, in which nothing else is decided. Kubernetes itself has no bounds
// here.
const (
	maxAffinityTerms        = 256
	maxAffinityRequirements = 512
	maxAffinityValues       = 4096
)

// checkAffinity refuses a required node affinity that would cost too much. The values of the label by which users
// choose the nodes of each Job of a JobSet do not count: few nodes have it.
func (c *checker) checkAffinity() {
	terms := RequiredTerms(c.spec)
	requirements, values := 0, 0
	for term := range pointers.To(terms) {
		for _, list := range [][]corev1.NodeSelectorRequirement{term.MatchExpressions, term.MatchFields} {
			for j := range list {
				if requirements++; list[j].Key != jobset.NamespacedJobKey {
					values += len(list[j].Values)
				}
			}
		}
	}
	for _, bound := range []struct {
		of        string
		has, most int
	}{{"terms", len(terms), maxAffinityTerms}, {"expressions", requirements, maxAffinityRequirements},
		{"values", values, maxAffinityValues}} {
		if bound.has > bound.most {
			pod := place{}
			c.add(pod, "", invalid, fmt.Sprintf("%s.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution: Too many: %d: must have at most %d %s (pod set %q; give the nodes a label, and select that)",
				pod.path(c.podSet), bound.has, bound.most, bound.of, c.name))
			return
		}
	}
}

// RequiredTerms returns the terms of the required node affinity of the pods, nil if the pods have none.
func RequiredTerms(spec *corev1.PodSpec) []corev1.NodeSelectorTerm {
	if required := requiredNodes(spec); required != nil {
		return required.NodeSelectorTerms
	}
	return nil
}

// HasRequirement reports whether the required node affinity of the pods has a requirement for which holds returns true.
func HasRequirement(spec *corev1.PodSpec, holds func(corev1.NodeSelectorRequirement) bool) bool {
	return slices.ContainsFunc(RequiredTerms(spec), func(term corev1.NodeSelectorTerm) bool {
		return slices.ContainsFunc(term.MatchExpressions, holds)
	})
}
