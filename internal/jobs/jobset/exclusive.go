package jobset

import (
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"

	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/api/muster"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/podspec"
)

// exclusion says how the Jobs of a replicated job are kept apart.
type exclusion struct {
	// level is the label of nodes by which each Job gets a domain for itself, "" if it does not need one.
	level string
	// manual says that users have labelled and tainted nodes for each Job.
	manual bool
}

func exclusionOf(js *jobset.JobSet, rj *jobset.ReplicatedJob) exclusion {
	keys := placementKeys(js, rj)
	level, apart := keys[jobset.ExclusiveKey]
	_, byHand := keys[jobset.NodeSelectorStrategyKey]
	if !apart {
		return exclusion{}
	}
	return exclusion{level: level, manual: byHand}
}

// isAutomatic reports whether Muster chooses the domain of each Job.
func (e exclusion) isAutomatic() bool { return e.level != "" && !e.manual }

// request makes the pod set ask for an exclusive domain for each Job, as a slice of the pod set. It returns why that is
// not possible, "" if it is.
func (e exclusion) request(podSet *kueue.PodSet, js *jobset.JobSet, rj *jobset.ReplicatedJob) string {
	template := &podSet.Template
	if e.manual {
		e.requireManualNodes(&template.Spec, js, rj)
		return ""
	}
	size := jobs.PodsAtATime(&rj.Template.Spec)
	if !e.isAutomatic() || size == 0 {
		return ""
	}
	if errs := validation.IsQualifiedName(e.level); len(errs) > 0 {
		return fmt.Sprintf("the annotation %s is %q: it must be the key of a node label, such as topology.kubernetes.io/zone", jobset.ExclusiveKey, e.level)
	}
	template.Annotations = merged(template.Annotations, map[string]string{jobset.ExclusiveKey: e.level})
	if podSet.TopologyRequest == nil {
		podSet.TopologyRequest = &kueue.PodSetTopologyRequest{}
		ranksOf(rj).SetOn(podSet.TopologyRequest)
	}
	r := podSet.TopologyRequest
	if r.PodSetSliceRequiredTopology != nil || len(r.PodsetSliceRequiredTopologyConstraints) > 0 {
		return fmt.Sprintf("the annotation %s, which makes each Job a slice, cannot be combined with other slices", jobset.ExclusiveKey)
	}
	r.PodSetSliceRequiredTopology, r.PodSetSliceSize = ptr.To(e.level), ptr.To(size)
	return ""
}

// ranksOf returns how the pods of a replicated job are ordered: by the index of their Job, and within an Indexed Job by
// their own.
func ranksOf(rj *jobset.ReplicatedJob) jobs.Ranks {
	r := jobs.Ranks{GroupLabel: jobset.JobIndexKey, Groups: rj.Replicas}
	if ptr.Deref(rj.Template.Spec.CompletionMode, batchv1.IndexedCompletion) == batchv1.IndexedCompletion {
		r.IndexLabel = batchv1.JobCompletionIndexAnnotation
	}
	return r
}

// requireManualNodes makes admission consider only the nodes that users have prepared for the Jobs.
func (e exclusion) requireManualNodes(spec *corev1.PodSpec, js *jobset.JobSet, rj *jobset.ReplicatedJob) {
	var names []string
	for index := range rj.Replicas {
		names = append(names, namespacedJob(js, rj, index))
	}
	spec.Tolerations = append(spec.Tolerations, manualToleration)
	if len(names) > 0 {
		podspec.RequireLabel(spec, jobset.NamespacedJobKey, names)
	}
}

// manualToleration tolerates the taint of nodes that users reserve for Jobs.
var manualToleration = corev1.Toleration{Key: jobset.NoScheduleTaintKey, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}

// namespacedJob returns the value of the label on nodes that are reserved for a Job.
func namespacedJob(js *jobset.JobSet, rj *jobset.ReplicatedJob, index int32) string {
	return js.Namespace + "_" + jobName(js, rj.Name, index)
}

// placeJob adds to the template where the Job's pods may run: at the places that they were given, and, if the
// replicated job is exclusive, in a domain of the Job's own. That domain follows from the places or from labels that
// users set. Otherwise kube-scheduler finds one by pod affinity: every pod of the Job asks to be with the others and
// away from those of other Jobs, so that no pod has to come first.
func (p *planner) placeJob(rj *jobset.ReplicatedJob, index int32, template corev1.PodTemplateSpec) corev1.PodTemplateSpec {
	apart := exclusionOf(p.js, rj)
	granted, isGranted := p.seen.Admission.PodSets[rj.Name]
	row := p.layoutOf(rj, granted)
	part := row.part(index)
	switch {
	case apart.manual:
		if isGranted {
			template = granted.Inject(template)
		}
		template.Spec.NodeSelector = merged(template.Spec.NodeSelector, map[string]string{jobset.NamespacedJobKey: namespacedJob(p.js, rj, index)})
		template.Spec.Tolerations = append(template.Spec.Tolerations, manualToleration)
	case isGranted && len(granted.Places) > 0:
		in := granted.For(part)
		if boundsOf(p.js, rj).Elastic {
			in = granted.At(nil) // pods added later go elsewhere, from the same template
		}
		if said := row.annotation(index); said != "" {
			in.Annotations = merged(in.Annotations, map[string]string{muster.RanksAnnotation: said})
		}
		template = in.Inject(template)
		if domain, ok := granted.Domain(apart.level, part); ok && apart.isAutomatic() {
			template.Spec.NodeSelector = merged(template.Spec.NodeSelector, map[string]string{apart.level: domain})
		}
	default:
		if isGranted {
			template = granted.Inject(template)
		}
		if apart.isAutomatic() {
			keepApart(&template, apart.level)
		}
	}
	return template
}

// keepApart makes pods share a domain of this level with the pods of their Job and with those of no other. It ignores
// pods of other priorities, so that kube-scheduler may preempt them.
func keepApart(template *corev1.PodTemplateSpec, level string) {
	key := template.Labels[jobset.JobKey]
	everywhere := &metav1.LabelSelector{}
	own := metav1.LabelSelectorRequirement{Key: jobset.JobKey, Operator: metav1.LabelSelectorOpIn, Values: []string{key}}
	others := []metav1.LabelSelectorRequirement{
		{Key: jobset.JobKey, Operator: metav1.LabelSelectorOpExists},
		{Key: jobset.JobKey, Operator: metav1.LabelSelectorOpNotIn, Values: []string{key}},
	}
	if priority, ok := template.Labels[jobset.PriorityKey]; ok {
		others = append(others, metav1.LabelSelectorRequirement{Key: jobset.PriorityKey, Operator: metav1.LabelSelectorOpIn, Values: []string{priority}})
	}
	spec := &template.Spec
	if spec.Affinity == nil {
		spec.Affinity = &corev1.Affinity{}
	}
	if spec.Affinity.PodAffinity == nil {
		spec.Affinity.PodAffinity = &corev1.PodAffinity{}
	}
	if spec.Affinity.PodAntiAffinity == nil {
		spec.Affinity.PodAntiAffinity = &corev1.PodAntiAffinity{}
	}
	with, away := &spec.Affinity.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution, &spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	*with = append(*with, corev1.PodAffinityTerm{TopologyKey: level, NamespaceSelector: everywhere,
		LabelSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{own}}})
	*away = append(*away, corev1.PodAffinityTerm{TopologyKey: level, NamespaceSelector: everywhere,
		LabelSelector: &metav1.LabelSelector{MatchExpressions: others}})
}

// otherDomain returns the label by which the template of a Job with places selects another domain than the one that they
// are in, and both its values; label is "" if it does not.
func (p *planner) otherDomain(rj *jobset.ReplicatedJob, index int32, template corev1.PodTemplateSpec, granted jobs.PodSetAdmission) (label, selected, is string) {
	apart := exclusionOf(p.js, rj)
	is, known := granted.Domain(apart.level, p.layoutOf(rj, granted).part(index))
	selected, pinned := template.Spec.NodeSelector[apart.level]
	if !apart.isAutomatic() || !known || !pinned || selected == is {
		return "", "", ""
	}
	return apart.level, selected, is
}

// samePodAffinity reports whether two templates have the same pod affinity and anti-affinity, which cannot be changed
// in a Job.
func samePodAffinity(a, b corev1.PodSpec) bool {
	company := func(spec corev1.PodSpec) (with *corev1.PodAffinity, away *corev1.PodAntiAffinity) {
		if spec.Affinity == nil {
			return nil, nil
		}
		return spec.Affinity.PodAffinity, spec.Affinity.PodAntiAffinity
	}
	with, away := company(a)
	wanted, unwanted := company(b)
	return equality.Semantic.DeepEqual(with, wanted) && equality.Semantic.DeepEqual(away, unwanted)
}
