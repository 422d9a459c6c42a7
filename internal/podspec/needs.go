package podspec

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

// SameNeeds reports whether pods of both specs have the same requests and placement constraints.
func SameNeeds(a, b *corev1.PodSpec) bool { return equality.Semantic.DeepEqual(Needs(a), Needs(b)) }

// Needs returns the part of a pod spec that decides what the pod costs and where it may run.
func Needs(spec *corev1.PodSpec) corev1.PodSpec {
	out := corev1.PodSpec{
		NodeSelector: spec.NodeSelector, Tolerations: spec.Tolerations, RuntimeClassName: spec.RuntimeClassName,
		Overhead: spec.Overhead, Resources: spec.Resources,
	}
	if required := requiredNodes(spec); required != nil {
		out.Affinity = &corev1.Affinity{
			NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: required}}
	}
	for _, c := range spec.InitContainers {
		init := corev1.Container{Resources: c.Resources, RestartPolicy: c.RestartPolicy}
		out.InitContainers = append(out.InitContainers, init)
	}
	for _, c := range spec.Containers {
		out.Containers = append(out.Containers, corev1.Container{Resources: c.Resources})
	}
	return out
}

// SetNeeds replaces the needs of the spec by those of the other one. Containers that the other spec does not have cost
// nothing.
func SetNeeds(spec *corev1.PodSpec, others corev1.PodSpec) {
	spec.NodeSelector, spec.Tolerations = others.NodeSelector, others.Tolerations
	spec.RuntimeClassName, spec.Overhead, spec.Resources = others.RuntimeClassName, others.Overhead, others.Resources
	if spec.Affinity != nil && spec.Affinity.NodeAffinity != nil {
		spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution = nil
	}
	if required := requiredNodes(&others); required != nil {
		*requiredIn(spec) = required
	}
	for i := range spec.InitContainers {
		var of corev1.Container
		if i < len(others.InitContainers) {
			of = others.InitContainers[i]
		}
		spec.InitContainers[i].Resources, spec.InitContainers[i].RestartPolicy = of.Resources, of.RestartPolicy
	}
	for i := range spec.Containers {
		var of corev1.Container
		if i < len(others.Containers) {
			of = others.Containers[i]
		}
		spec.Containers[i].Resources = of.Resources
	}
}

// requiredNodes returns what the pod requires of its node beside its node selector, nil for nothing.
func requiredNodes(spec *corev1.PodSpec) *corev1.NodeSelector {
	if spec.Affinity == nil || spec.Affinity.NodeAffinity == nil {
		return nil
	}
	return spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
}
