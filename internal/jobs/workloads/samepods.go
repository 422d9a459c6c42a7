package workloads

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/utils/ptr"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/api/muster"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/podspec"
	"github.com/musterhq/muster/internal/pointers"
)

// asksTheSame reports whether the pod sets of a Workload ask for the same numbers of pods as the pod sets of a job,
// with the same requests and placement constraints, and are elastic only where the job is, as no other job follows its
// queue. Nothing else about a pod concerns the queue, and Workloads made by hand leave it out.
func asksTheSame(requested, own []kueue.PodSet) bool {
	return slices.EqualFunc(requested, own, func(requested, own kueue.PodSet) bool {
		return requested.Name == own.Name && requested.Count == own.Count && placesTheSame(&requested, &own) &&
			equality.Semantic.DeepEqual(meaningOf(&requested.Template.Spec), meaningOf(&own.Template.Spec)) &&
			(jobs.IsElasticTemplate(&own.Template) || !jobs.IsElasticTemplate(&requested.Template)) &&
			(requested.Template.Annotations[muster.MinPodsAnnotation] == "" ||
				own.Template.Annotations[muster.MinPodsAnnotation] != "")
	})
}

// placesTheSame reports whether a pod set of a Workload asks for the same places as that of a job, whose annotations
// say which places. A request that Muster derives from other fields of the job may be in the Workload or not; how pods
// are ordered does not matter.
func placesTheSame(requested, own *kueue.PodSet) bool {
	asked, _ := jobs.TopologyOf(own.Template.Annotations, own.Count)
	same := func(request *kueue.PodSetTopologyRequest) bool {
		return equality.Semantic.DeepEqual(topologyMeaning(requested.TopologyRequest), topologyMeaning(request))
	}
	return same(asked) || asked == nil && same(own.TopologyRequest)
}

// topologyMeaning returns the levels, slices and group of a request, in one form: a single layer of slices as a list of
// layers. It is empty for nil.
func topologyMeaning(request *kueue.PodSetTopologyRequest) (out kueue.PodSetTopologyRequest) {
	if request == nil {
		return out
	}
	out.Required, out.Preferred, out.PodSetGroupName = request.Required, request.Preferred, request.PodSetGroupName
	if ptr.Deref(request.Unconstrained, false) {
		out.Unconstrained = request.Unconstrained
	}
	out.PodsetSliceRequiredTopologyConstraints = request.PodsetSliceRequiredTopologyConstraints
	if level := request.PodSetSliceRequiredTopology; level != nil {
		out.PodsetSliceRequiredTopologyConstraints = []kueue.PodsetSliceRequiredTopologyConstraint{{Topology: *level,
			Size: ptr.Deref(request.PodSetSliceSize, 0)}}
	}
	return out
}

// meaningOf returns the needs of a pod spec, and its requirements for the pods beside it, in one form: the order of
// tolerations and of node selector terms does not matter, nor whether a default is written.
func meaningOf(spec *corev1.PodSpec) corev1.PodSpec {
	out := podspec.Needs(spec)
	out.Tolerations = slices.Clone(out.Tolerations)
	for toleration := range pointers.To(out.Tolerations) {
		toleration.Operator = cmp.Or(toleration.Operator, corev1.TolerationOpEqual)
	}
	slices.SortFunc(out.Tolerations, byText)
	if out.Affinity != nil {
		out.Affinity = out.Affinity.DeepCopy()
		slices.SortFunc(out.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms, byText)
	}
	if a := spec.Affinity; a != nil && a.PodAffinity != nil {
		if with := a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution; len(with) > 0 {
			out.Affinity = cmp.Or(out.Affinity, &corev1.Affinity{})
			out.Affinity.PodAffinity = &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: with}
		}
	}
	if a := spec.Affinity; a != nil && a.PodAntiAffinity != nil {
		if away := a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution; len(away) > 0 {
			out.Affinity = cmp.Or(out.Affinity, &corev1.Affinity{})
			out.Affinity.PodAntiAffinity = &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: away}
		}
	}
	for _, c := range spec.TopologySpreadConstraints {
		if c.WhenUnsatisfiable == corev1.DoNotSchedule {
			out.TopologySpreadConstraints = append(out.TopologySpreadConstraints, c)
		}
	}
	return out
}

// byText compares values by their text.
func byText[T any](a, b T) int { return cmp.Compare(fmt.Sprintf("%+v", a), fmt.Sprintf("%+v", b)) }
