package podspec

import (
	"cmp"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Injection is what admission adds to the pods of a pod set, so that they run on the flavor whose quota they use and on
// the nodes assigned to them.
type Injection struct {
	Labels       map[string]string
	Annotations  map[string]string
	NodeSelector map[string]string
	Tolerations  []corev1.Toleration
	// Nodes are the host names of the only nodes on which the pods may run; empty for no restriction.
	Nodes []string
	// Gates are scheduling gates, which hold each pod until it is given a place.
	Gates []string
}

// Inject returns a copy of the template with the injection. For a label, annotation or node selector in both, the
// injection wins, as quota was counted for it.
func (in Injection) Inject(template corev1.PodTemplateSpec) corev1.PodTemplateSpec {
	out := *template.DeepCopy()
	out.Labels = Merged(out.Labels, in.Labels)
	out.Annotations = Merged(out.Annotations, in.Annotations)
	out.Spec.NodeSelector = Merged(out.Spec.NodeSelector, in.NodeSelector)
	for _, t := range in.Tolerations {
		if !slices.ContainsFunc(out.Spec.Tolerations, func(have corev1.Toleration) bool { return have.MatchToleration(&t) }) {
			out.Spec.Tolerations = append(out.Spec.Tolerations, t)
		}
	}
	for _, gate := range in.Gates {
		g := corev1.PodSchedulingGate{Name: gate}
		if !slices.Contains(out.Spec.SchedulingGates, g) {
			out.Spec.SchedulingGates = append(out.Spec.SchedulingGates, g)
		}
	}
	if len(in.Nodes) > 0 {
		RequireLabel(&out.Spec, corev1.LabelHostname, in.Nodes)
	}
	return out
}

// RequireLabel restricts the pods to nodes whose label has one of the values. It changes the spec, as Require does.
func RequireLabel(spec *corev1.PodSpec, key string, values []string) {
	Require(spec, corev1.NodeSelectorRequirement{Key: key, Operator: corev1.NodeSelectorOpIn, Values: values})
}

// Require restricts the pods to nodes that also meet the requirement. Node selector terms are alternatives, so it
// extends each of them; an empty term matches no node and stays empty. It changes the spec, which must be the caller's
// own.
func Require(spec *corev1.PodSpec, only corev1.NodeSelectorRequirement) {
	required := requiredIn(spec)
	if *required == nil {
		*required = &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{only}}}}
		return
	}
	for i := range (*required).NodeSelectorTerms {
		if term := &(*required).NodeSelectorTerms[i]; len(term.MatchExpressions)+len(term.MatchFields) > 0 {
			term.MatchExpressions = append(term.MatchExpressions, only)
		}
	}
}

// requiredIn returns where the spec has the requirements for nodes, and makes room for them if it has none.
func requiredIn(spec *corev1.PodSpec) **corev1.NodeSelector {
	spec.Affinity = cmp.Or(spec.Affinity, &corev1.Affinity{})
	spec.Affinity.NodeAffinity = cmp.Or(spec.Affinity.NodeAffinity, &corev1.NodeAffinity{})
	return &spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
}

// Merged returns the entries of both maps; where both have a key, over wins. It returns base itself if over is empty.
func Merged(base, over map[string]string) map[string]string {
	if len(over) == 0 {
		return base
	}
	out := make(map[string]string, len(base)+len(over))
	maps.Copy(out, base)
	maps.Copy(out, over)
	return out
}
