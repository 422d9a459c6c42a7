package podspec

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Injection is what admission adds to the pods of a pod set, so that they run where
// their quota is.
type Injection struct {
	Labels       map[string]string
	Annotations  map[string]string
	NodeSelector map[string]string
	Tolerations  []corev1.Toleration
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
	return out
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
