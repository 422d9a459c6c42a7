package admission

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/utils/ptr"

	config "github.com/musterhq/muster/api/config/v1alpha1"
	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/api/muster"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/engine/elastic"
	"github.com/musterhq/muster/internal/engine/flavor"
	"github.com/musterhq/muster/internal/engine/place"
	"github.com/musterhq/muster/internal/engine/quota"
	"github.com/musterhq/muster/internal/podspec"
	"github.com/musterhq/muster/internal/workload"
)

// accountant knows what the pods of Workloads cost: it keeps the LimitRanges and
// RuntimeClasses by which the API server will change or refuse them. One goroutine
// uses it.
//
// Its setters report whether anything changed by which a Workload might cost
// something else. A LimitRange may concern every Workload of its namespace, a
// RuntimeClass those that namesRuntimeClass says.
type accountant struct {
	counting podspec.Counting
	// limitRanges are by namespace, and there in order of name.
	limitRanges    map[string][]*corev1.LimitRange
	runtimeClasses map[string]*nodev1.RuntimeClass
}

func newAccountant(counting podspec.Counting) *accountant {
	return &accountant{
		counting:       counting,
		limitRanges:    map[string][]*corev1.LimitRange{},
		runtimeClasses: map[string]*nodev1.RuntimeClass{},
	}
}

// countingOf is how the configuration has requests counted.
func countingOf(r *config.Resources) podspec.Counting {
	out := podspec.Counting{ExcludePrefixes: r.ExcludeResourcePrefixes}
	for _, t := range r.Transformations {
		if out.Transformations == nil {
			out.Transformations = map[corev1.ResourceName]podspec.Transformation{}
		}
		out.Transformations[t.Input] = podspec.Transformation{
			Replace:    ptr.Deref(t.Strategy, config.Retain) == config.Replace,
			MultiplyBy: t.MultiplyBy,
			Outputs:    t.Outputs,
		}
	}
	return out
}

// account says what a Workload's pods cost, and why it must not be admitted as it
// is, or "".
func (a *accountant) account(w *kueue.Workload) (podSets []engine.PodSet, refused string) {
	site := podspec.Site{LimitRanges: a.limitRanges[w.Namespace], RuntimeClasses: a.runtimeClasses}
	var violations []podspec.Violation
	podSets = make([]engine.PodSet, len(w.Spec.PodSets))
	for i := range w.Spec.PodSets {
		podSet := &w.Spec.PodSets[i]
		given := &podSet.Template.Spec
		stored := site.Stored(given)
		violations = append(violations, site.Check(i, string(podSet.Name), given, stored)...)
		podSets[i] = a.podSet(podSet, stored)
		podSets[i].Reclaimable = workload.Reclaimed(w, podSet)
		if podSets[i].Elastic > 0 {
			podSets[i].Wanted = workload.Wanted(w, podSet)
		}
	}
	return podSets, podspec.Message(violations)
}

// podSet is a pod set in the engine's words, of which a pod is as stored.
func (a *accountant) podSet(podSet *kueue.PodSet, stored *corev1.PodSpec) engine.PodSet {
	asked := podspec.Total(stored)
	counted := a.counting.Count(asked)
	out := engine.PodSet{
		Name:         string(podSet.Name),
		Count:        podSet.Count,
		MinCount:     ptr.Deref(podSet.MinCount, 0),
		PerPod:       make(map[string]int64, len(counted)),
		Tolerations:  stored.Tolerations,
		NodeSelector: stored.NodeSelector,
		NodeName:     stored.NodeName,
		Unpinned:     goesByHand(stored),
		HostPorts:    hostPortsOf(stored),
		Topology:     topologyRequestOf(podSet),
		ExclusiveKey: podSet.Template.Annotations[jobset.ExclusiveKey],
	}
	if podSet.Template.Annotations[muster.MinReplicasAnnotation] != "" && out.MinCount > 0 {
		// A job that says a wrong one does not queue; of a Workload without one it counts as not said.
		exponent, _ := podspec.SpeedExponent(podSet.Template.Annotations)
		out.Elastic = cmp.Or(exponent, elastic.DefaultExponent)
	}
	if stored.Affinity != nil {
		out.Affinity = stored.Affinity.NodeAffinity
	}
	for name, q := range counted {
		out.PerPod[string(name)] = quota.FromQuantity(name, q)
	}
	if a.counting.Changes() {
		out.OfNode = make(map[string]int64, len(asked))
		for name, q := range asked {
			out.OfNode[string(name)] = quota.FromQuantity(name, q)
		}
	}
	return out
}

// goesByHand reports whether people have said where the pods go, by labels of nodes that are kept for each Job of a JobSet.
func goesByHand(spec *corev1.PodSpec) bool {
	if spec.Affinity == nil || spec.Affinity.NodeAffinity == nil || spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return false
	}
	return slices.ContainsFunc(spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms, func(term corev1.NodeSelectorTerm) bool {
		return slices.ContainsFunc(term.MatchExpressions, func(e corev1.NodeSelectorRequirement) bool { return e.Key == jobset.NamespacedJobKey })
	})
}

// topologyRequestOf is how near each other the pods of the pod set are to be, nil where they do not say.
func topologyRequestOf(podSet *kueue.PodSet) *flavor.TopologyRequest {
	asked := podSet.TopologyRequest
	if asked == nil {
		return nil
	}
	out := &flavor.TopologyRequest{Group: ptr.Deref(asked.PodSetGroupName, "")}
	switch {
	case asked.Required != nil:
		out.Level, out.Mandatory = *asked.Required, true
	case asked.Preferred != nil:
		out.Level = *asked.Preferred
	}
	if level := asked.PodSetSliceRequiredTopology; level != nil {
		out.Slices = []place.Slice{{Level: *level, Size: ptr.Deref(asked.PodSetSliceSize, podSet.Count)}}
	}
	for _, layer := range asked.PodsetSliceRequiredTopologyConstraints {
		out.Slices = append(out.Slices, place.Slice{Level: layer.Topology, Size: layer.Size})
	}
	return out
}

// setLimitRange notes a LimitRange. One that says nothing of containers or pods is
// not kept.
func (a *accountant) setLimitRange(limitRange *corev1.LimitRange) (changed bool) {
	bounds := func(item corev1.LimitRangeItem) bool {
		return item.Type == corev1.LimitTypeContainer || item.Type == corev1.LimitTypePod
	}
	if !slices.ContainsFunc(limitRange.Spec.Limits, bounds) {
		return a.deleteLimitRange(limitRange.Namespace, limitRange.Name)
	}
	kept := a.limitRanges[limitRange.Namespace]
	at, found := findLimitRange(kept, limitRange.Name)
	if !found {
		a.limitRanges[limitRange.Namespace] = slices.Insert(kept, at, limitRange)
		return true
	}
	changed = !equality.Semantic.DeepEqual(kept[at].Spec, limitRange.Spec)
	kept[at] = limitRange
	return changed
}

// deleteLimitRange forgets a LimitRange.
func (a *accountant) deleteLimitRange(namespace, name string) (changed bool) {
	kept := a.limitRanges[namespace]
	at, found := findLimitRange(kept, name)
	switch {
	case !found:
		return false
	case len(kept) == 1:
		delete(a.limitRanges, namespace)
	default:
		a.limitRanges[namespace] = slices.Delete(kept, at, at+1)
	}
	return true
}

func findLimitRange(kept []*corev1.LimitRange, name string) (at int, found bool) {
	return slices.BinarySearchFunc(kept, name, func(limitRange *corev1.LimitRange, name string) int { return cmp.Compare(limitRange.Name, name) })
}

// setRuntimeClass notes a RuntimeClass.
func (a *accountant) setRuntimeClass(class *nodev1.RuntimeClass) (changed bool) {
	had := a.runtimeClasses[class.Name]
	a.runtimeClasses[class.Name] = class
	return had == nil || !equality.Semantic.DeepEqual(had.Overhead, class.Overhead) || !equality.Semantic.DeepEqual(had.Scheduling, class.Scheduling)
}

// deleteRuntimeClass forgets a RuntimeClass.
func (a *accountant) deleteRuntimeClass(name string) (changed bool) {
	_, changed = a.runtimeClasses[name]
	delete(a.runtimeClasses, name)
	return changed
}

// namesRuntimeClass reports whether pods of the Workload are of the RuntimeClass.
func namesRuntimeClass(w *kueue.Workload, name string) bool {
	return slices.ContainsFunc(w.Spec.PodSets, func(podSet kueue.PodSet) bool {
		class := podSet.Template.Spec.RuntimeClassName
		return class != nil && *class == name
	})
}
