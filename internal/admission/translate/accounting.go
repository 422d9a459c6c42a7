package translate

import (
	"cmp"
	"slices"
	"strconv"

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

// accountant computes what the pods of Workloads request. It keeps the LimitRanges and RuntimeClasses by which the
// API server defaults, extends or refuses pods. It must be used by one goroutine only.
//
// Its setters report whether the requests of a Workload may have changed: a LimitRange concerns every Workload of its
// namespace, a RuntimeClass the Workloads for which namesRuntimeClass is true.
type accountant struct {
	counting podspec.Counting
	// limitRanges are by namespace, and sorted by name.
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

// CountingOf returns how the configuration counts requests.
func CountingOf(r *config.Resources) podspec.Counting {
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

// account returns the pod sets of a Workload with their requests, and why the Workload must not be admitted as it is,
// "" if it may be.
func (a *accountant) account(w *kueue.Workload) (podSets []engine.PodSet, refused string) {
	site := podspec.Environment{LimitRanges: a.limitRanges[w.Namespace], RuntimeClasses: a.runtimeClasses}
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
	setBounds(w, podSets)
	return podSets, podspec.Message(violations)
}

// podSet translates a pod set whose pods will be stored as given.
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
		Unpinned:     placedByNodeLabels(stored),
		HostPorts:    hostPortsOf(stored),
		Topology:     topologyRequestOf(podSet),
		ExclusiveKey: podSet.Template.Annotations[jobset.ExclusiveKey],
	}
	if n, err := strconv.ParseInt(podSet.Template.Annotations[muster.MinPodsAnnotation], 10, 32); err == nil && n > 0 {
		out.Together = int32(n)
	}
	if podSet.Template.Annotations[muster.MinReplicasAnnotation] != "" && out.MinCount > 0 {
		// A job with an invalid exponent is not queued; on a Workload without a job it counts as absent.
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

// placedByNodeLabels reports whether users choose the nodes of the pods, by node labels reserved for each Job of a
// JobSet.
func placedByNodeLabels(spec *corev1.PodSpec) bool {
	return podspec.HasRequirement(spec,
		func(e corev1.NodeSelectorRequirement) bool { return e.Key == jobset.NamespacedJobKey })
}

// topologyRequestOf returns how close together the pods of the pod set must be placed, nil if they do not say.
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

// setLimitRange records a LimitRange. One without limits for containers or pods is not kept.
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

// deleteLimitRange drops a LimitRange.
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
	return slices.BinarySearchFunc(kept, name,
		func(limitRange *corev1.LimitRange, name string) int { return cmp.Compare(limitRange.Name, name) })
}

// setRuntimeClass records a RuntimeClass.
func (a *accountant) setRuntimeClass(class *nodev1.RuntimeClass) (changed bool) {
	had := a.runtimeClasses[class.Name]
	a.runtimeClasses[class.Name] = class
	return had == nil || !equality.Semantic.DeepEqual(had.Overhead, class.Overhead) ||
		!equality.Semantic.DeepEqual(had.Scheduling, class.Scheduling)
}

// deleteRuntimeClass drops a RuntimeClass.
func (a *accountant) deleteRuntimeClass(name string) (changed bool) {
	_, changed = a.runtimeClasses[name]
	delete(a.runtimeClasses, name)
	return changed
}

// namesRuntimeClass reports whether a pod set of the Workload uses the RuntimeClass.
func namesRuntimeClass(w *kueue.Workload, name string) bool {
	return slices.ContainsFunc(w.Spec.PodSets, func(podSet kueue.PodSet) bool {
		class := podSet.Template.Spec.RuntimeClassName
		return class != nil && *class == name
	})
}
