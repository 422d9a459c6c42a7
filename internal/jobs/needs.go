package jobs

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
)

// asksTheSame reports whether the pod sets of a Workload ask for the same numbers of pods as those of a job, with the
// same requests and placement constraints, and are elastic only where the job is, as no other job follows its queue.
// Nothing else about a pod concerns the queue, and Workloads made by hand leave it out.
func asksTheSame(said, own []kueue.PodSet) bool {
	return slices.EqualFunc(said, own, func(said, own kueue.PodSet) bool {
		return said.Name == own.Name && said.Count == own.Count && needTheSame(&said.Template.Spec, &own.Template.Spec) &&
			(isElasticTemplate(&own.Template) || !isElasticTemplate(&said.Template))
	})
}

// needTheSame reports whether pods of both specs have the same requests and placement constraints.
func needTheSame(a, b *corev1.PodSpec) bool { return equality.Semantic.DeepEqual(needs(a), needs(b)) }

// needs returns the part of a pod spec that decides what the pod costs and where it may run.
func needs(spec *corev1.PodSpec) corev1.PodSpec {
	out := corev1.PodSpec{
		NodeSelector: spec.NodeSelector, Tolerations: spec.Tolerations, RuntimeClassName: spec.RuntimeClassName,
		Overhead: spec.Overhead, Resources: spec.Resources,
	}
	if a := spec.Affinity; a != nil && a.NodeAffinity != nil && a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution != nil {
		out.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution}}
	}
	for _, c := range spec.InitContainers {
		out.InitContainers = append(out.InitContainers, corev1.Container{Resources: c.Resources, RestartPolicy: c.RestartPolicy})
	}
	for _, c := range spec.Containers {
		out.Containers = append(out.Containers, corev1.Container{Resources: c.Resources})
	}
	return out
}

// setNeeds replaces the needs of the spec by those of the other one. Containers that the other spec does not have cost
// nothing.
func setNeeds(spec *corev1.PodSpec, others corev1.PodSpec) {
	spec.NodeSelector, spec.Tolerations, spec.RuntimeClassName = others.NodeSelector, others.Tolerations, others.RuntimeClassName
	spec.Overhead, spec.Resources = others.Overhead, others.Resources
	if spec.Affinity != nil && spec.Affinity.NodeAffinity != nil {
		spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution = nil
	}
	if others.Affinity != nil {
		spec.Affinity = cmp.Or(spec.Affinity, &corev1.Affinity{})
		spec.Affinity.NodeAffinity = cmp.Or(spec.Affinity.NodeAffinity, &corev1.NodeAffinity{})
		spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution = others.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
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

// isFor reports whether the quota is for pods with the needs of this template.
func (p PodSetAdmission) isFor(template *corev1.PodTemplateSpec) bool {
	return p.Template == nil || needTheSame(&p.Template.Spec, &template.Spec)
}

// HeldTemplate returns the template if the quota is for its pods, else the admitted one: a job changed after its
// admission to need something else gets no more than it has quota for. The result must not be modified.
func (p PodSetAdmission) HeldTemplate(template *corev1.PodTemplateSpec) *corev1.PodTemplateSpec {
	if p.isFor(template) {
		return template
	}
	return p.Template
}
