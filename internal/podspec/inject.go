package podspec

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Injection is what admission adds to the pods of a pod set, so that they run where
// their quota is, and on the nodes that they were given.
type Injection struct {
	Labels       map[string]string
	Annotations  map[string]string
	NodeSelector map[string]string
	Tolerations  []corev1.Toleration
	// Nodes are the host names of the only nodes where the pods may run; none is no say.
	Nodes []string
	// Gates hold each pod until it was told more.
	Gates []string
}

// Inject returns the template with what admission adds. Where both name a label, a
// node or an annotation, admission wins: quota was counted for its choice.
func (in Injection) Inject(template corev1.PodTemplateSpec) corev1.PodTemplateSpec {
	out := *template.DeepCopy()
	out.Labels = merged(out.Labels, in.Labels)
	out.Annotations = merged(out.Annotations, in.Annotations)
	out.Spec.NodeSelector = merged(out.Spec.NodeSelector, in.NodeSelector)
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
		requireNodes(&out.Spec, in.Nodes)
	}
	return out
}

// requireNodes keeps pods to the nodes. Their user's terms are alternatives, so each of
// them gets the nodes beside what it asks; one that is empty matches no node and stays
// so.
func requireNodes(spec *corev1.PodSpec, hostNames []string) {
	only := corev1.NodeSelectorRequirement{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: hostNames}
	if spec.Affinity == nil {
		spec.Affinity = &corev1.Affinity{}
	}
	if spec.Affinity.NodeAffinity == nil {
		spec.Affinity.NodeAffinity = &corev1.NodeAffinity{}
	}
	affinity := spec.Affinity.NodeAffinity
	if affinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		affinity.RequiredDuringSchedulingIgnoredDuringExecution = &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{only}}}}
		return
	}
	terms := affinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	for i := range terms {
		if len(terms[i].MatchExpressions) > 0 || len(terms[i].MatchFields) > 0 {
			terms[i].MatchExpressions = append(terms[i].MatchExpressions, only)
		}
	}
}

func merged(base, over map[string]string) map[string]string {
	if len(over) == 0 {
		return base
	}
	out := make(map[string]string, len(base)+len(over))
	maps.Copy(out, base)
	maps.Copy(out, over)
	return out
}
