package jobset

import (
	"cmp"
	"fmt"
	"slices"

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

// layouts knows the rank layout of each replicated job, and adds to pod templates where the pods may run.
type layouts struct {
	*view
	byName map[string]rankLayout
}

// rankLayout says which of the admitted ranks the Jobs of a replicated job have: they follow one another in the order
// of job indexes.
type rankLayout struct {
	// pods is the number of pods of each Job.
	pods int32
	// notAdmitted lists, in order, the indexes of Jobs that had succeeded before and were not admitted. They have no
	// ranks.
	notAdmitted []int32
	// places are the places of all admitted ranks.
	places podspec.Ranking
}

// ranks returns the admitted ranks, from (inclusive) to to (exclusive), of the pods of the Job with this index. A Job
// that was not admitted has none.
func (r rankLayout) ranks(index int32) (from, to int32) {
	before, leftOut := slices.BinarySearch(r.notAdmitted, index)
	from = (index - int32(before)) * r.pods
	if leftOut {
		return from, from
	}
	return from, from + r.pods
}

// part returns the admitted ranks and places of the Job with this index.
func (r rankLayout) part(index int32) jobs.Part {
	from, to := r.ranks(index)
	return jobs.Part{From: from, To: to, Places: r.places.Ranks(from, to)}
}

// annotation returns the value of the annotation that tells pods the ranks of their Job, as in 4-7, if these do not
// follow from its index; otherwise "".
func (r rankLayout) annotation(index int32) string {
	from, to := r.ranks(index)
	if len(r.notAdmitted) == 0 || from >= to {
		return ""
	}
	return fmt.Sprintf("%d-%d", from, to-1)
}

// of returns the rank layout of a replicated job.
func (l *layouts) of(rj *jobset.ReplicatedJob, granted jobs.PodSetAdmission) rankLayout {
	if r, known := l.byName[rj.Name]; known {
		return r
	}
	r := rankLayout{pods: granted.Count}
	if !boundsOf(l.js, rj).Elastic {
		r = newRankLayout(rj, granted, l.succeededOf(rj.Name))
	}
	r.places = granted.Places.Ranking()
	l.byName[rj.Name] = r
	return r
}

// newRankLayout derives from the numbers of admitted pods and of pods asked for which Jobs were admitted. A JobSet that
// is queued again asks for no quota for Jobs that have succeeded; success is final, so the Jobs that were left out are
// the Jobs that succeeded first, as many as there are pods missing. Others may have succeeded shortly before the
// admission, which did not know it: these have ranks that nothing uses. If pods are missing because the Jobs were made
// smaller before the Workload said so, each Job has fewer pods. succeeded lists the indexes of succeeded Jobs in the
// order in which they succeeded.
func newRankLayout(rj *jobset.ReplicatedJob, granted jobs.PodSetAdmission, succeeded []int32) rankLayout {
	whole := granted.Asked / max(1, rj.Replicas)
	for pods := whole; pods > 0; pods-- {
		if left := rj.Replicas - granted.Count/pods; granted.Count%pods == 0 && left >= 0 && int(left) <= len(succeeded) {
			leftOut := slices.Clone(succeeded[:left])
			slices.Sort(leftOut)
			return rankLayout{pods: pods, notAdmitted: leftOut}
		}
	}
	return rankLayout{pods: whole}
}

// succeededOf returns the indexes of the succeeded Jobs of a replicated job, in the order in which they succeeded.
func (v *view) succeededOf(replicatedJob string) []int32 {
	var succeeded []*batchv1.Job
	for _, job := range v.children.succeeded {
		if isOf(job, replicatedJob) {
			succeeded = append(succeeded, job)
		}
	}
	slices.SortStableFunc(succeeded, func(x, y *batchv1.Job) int {
		first, second := jobs.TrueCondition(x, batchv1.JobComplete), jobs.TrueCondition(y, batchv1.JobComplete)
		return first.LastTransitionTime.Compare(second.LastTransitionTime.Time)
	})
	var out []int32
	for _, job := range succeeded {
		if index, ok := attemptOf(job, jobset.JobIndexKey); ok {
			out = append(out, index)
		}
	}
	return out
}

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
		return fmt.Sprintf("the annotation %s is %q: it must be the key of a node label, such as topology.kubernetes.io/zone",
			jobset.ExclusiveKey, e.level)
	}
	template.Annotations = podspec.Merged(template.Annotations, map[string]string{jobset.ExclusiveKey: e.level})
	if podSet.TopologyRequest == nil {
		podSet.TopologyRequest = &kueue.PodSetTopologyRequest{}
		ranksOf(rj).SetOn(podSet.TopologyRequest)
	}
	r := podSet.TopologyRequest
	if r.PodSetSliceRequiredTopology != nil || len(r.PodsetSliceRequiredTopologyConstraints) > 0 {
		return fmt.Sprintf("the annotation %s, which makes each Job a slice, cannot be combined with other slices",
			jobset.ExclusiveKey)
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
var manualToleration = corev1.Toleration{Key: jobset.NoScheduleTaintKey, Operator: corev1.TolerationOpExists,
	Effect: corev1.TaintEffectNoSchedule}

// namespacedJob returns the value of the label on nodes that are reserved for a Job.
func namespacedJob(js *jobset.JobSet, rj *jobset.ReplicatedJob, index int32) string {
	return js.Namespace + "_" + jobName(js, rj.Name, index)
}

// place adds to the template where the Job's pods may run: at the places that they were given, and, if the replicated
// job is exclusive, in a domain of the Job's own. That domain follows from the places or from labels that users set.
// Otherwise kube-scheduler finds one by pod affinity: every pod of the Job asks to be with the pods of its Job and away
// from the pods of other Jobs, so that no pod has to come first.
func (l *layouts) place(rj *jobset.ReplicatedJob, index int32, template corev1.PodTemplateSpec) corev1.PodTemplateSpec {
	apart := exclusionOf(l.js, rj)
	granted, isGranted := l.seen.Admission.PodSets[rj.Name]
	row := l.of(rj, granted)
	part := row.part(index)
	switch {
	case apart.manual:
		if isGranted {
			template = granted.Inject(template)
		}
		template.Spec.NodeSelector = podspec.Merged(template.Spec.NodeSelector,
			map[string]string{jobset.NamespacedJobKey: namespacedJob(l.js, rj, index)})
		template.Spec.Tolerations = append(template.Spec.Tolerations, manualToleration)
	case isGranted && len(granted.Places) > 0:
		in := granted.For(part)
		if boundsOf(l.js, rj).Elastic {
			in = granted.At(nil) // pods added later go elsewhere, from the same template
		}
		if ranks := row.annotation(index); ranks != "" {
			in.Annotations = podspec.Merged(in.Annotations, map[string]string{muster.RanksAnnotation: ranks})
		}
		template = in.Inject(template)
		if domain, ok := granted.Domain(apart.level, part); ok && apart.isAutomatic() {
			template.Spec.NodeSelector = podspec.Merged(template.Spec.NodeSelector, map[string]string{apart.level: domain})
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

// keepApart makes pods share a domain of this level with the pods of their Job and with no pods of a second Job. It
// ignores pods of other priorities, so that kube-scheduler may preempt them.
func keepApart(template *corev1.PodTemplateSpec, level string) {
	key := template.Labels[jobset.JobKey]
	everywhere := &metav1.LabelSelector{}
	own := metav1.LabelSelectorRequirement{Key: jobset.JobKey, Operator: metav1.LabelSelectorOpIn, Values: []string{key}}
	others := []metav1.LabelSelectorRequirement{
		{Key: jobset.JobKey, Operator: metav1.LabelSelectorOpExists},
		{Key: jobset.JobKey, Operator: metav1.LabelSelectorOpNotIn, Values: []string{key}},
	}
	if priority, ok := template.Labels[jobset.PriorityKey]; ok {
		others = append(others, metav1.LabelSelectorRequirement{Key: jobset.PriorityKey, Operator: metav1.LabelSelectorOpIn,
			Values: []string{priority}})
	}
	spec := &template.Spec
	spec.Affinity = cmp.Or(spec.Affinity, &corev1.Affinity{})
	spec.Affinity.PodAffinity = cmp.Or(spec.Affinity.PodAffinity, &corev1.PodAffinity{})
	spec.Affinity.PodAntiAffinity = cmp.Or(spec.Affinity.PodAntiAffinity, &corev1.PodAntiAffinity{})
	with, away := &spec.Affinity.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution,
		&spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	*with = append(*with, corev1.PodAffinityTerm{TopologyKey: level, NamespaceSelector: everywhere,
		LabelSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{own}}})
	*away = append(*away, corev1.PodAffinityTerm{TopologyKey: level, NamespaceSelector: everywhere,
		LabelSelector: &metav1.LabelSelector{MatchExpressions: others}})
}

// otherDomain returns the label by which the template of a Job with places selects another domain than the one that
// they are in, and both its values; label is "" if it does not.
func (l *layouts) otherDomain(rj *jobset.ReplicatedJob, index int32, template corev1.PodTemplateSpec,
	granted jobs.PodSetAdmission) (label, selected, is string) {
	apart := exclusionOf(l.js, rj)
	is, known := granted.Domain(apart.level, l.of(rj, granted).part(index))
	selected, pinned := template.Spec.NodeSelector[apart.level]
	if !apart.isAutomatic() || !known || !pinned || selected == is {
		return "", "", ""
	}
	return apart.level, selected, is
}

// samePodAffinity reports whether two templates have the same pod affinity and anti-affinity, which cannot be changed
// in a Job.
func samePodAffinity(a, b corev1.PodSpec) bool {
	with, other := ptr.Deref(a.Affinity, corev1.Affinity{}), ptr.Deref(b.Affinity, corev1.Affinity{})
	return equality.Semantic.DeepEqual(with.PodAffinity, other.PodAffinity) &&
		equality.Semantic.DeepEqual(with.PodAntiAffinity, other.PodAntiAffinity)
}

// placementKeys returns the annotations about exclusive placement: an annotation of the replicated job takes precedence
// over the same one of the JobSet.
func placementKeys(js *jobset.JobSet, rj *jobset.ReplicatedJob) map[string]string {
	out := map[string]string{}
	for _, key := range []string{jobset.ExclusiveKey, jobset.NodeSelectorStrategyKey} {
		for _, from := range []map[string]string{js.Annotations, rj.Template.Annotations} {
			if value, ok := from[key]; ok {
				out[key] = value
			}
		}
	}
	return out
}
