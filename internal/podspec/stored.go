package podspec

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	"k8s.io/component-helpers/resource"
)

// Environment is what the API server uses in a namespace to default pods and to refuse them. The zero value is a
// namespace without LimitRanges in a cluster without RuntimeClasses.
type Environment struct {
	// LimitRanges are the LimitRanges of the namespace, ordered by name. The API server applies several in no defined
	// order; here the first by name sets a default.
	LimitRanges []*corev1.LimitRange
	// RuntimeClasses are the RuntimeClasses of the cluster, by name.
	RuntimeClasses map[string]*nodev1.RuntimeClass
}

// Stored returns the spec as the API server would store it in a pod, as far as resources and node selection are
// concerned. The steps and their order are the API server's: missing requests are set from limits, then come the
// defaults of LimitRanges, the RuntimeClass, and last pod-level resources.
//
// The result shares unchanged parts with the spec, and is the spec itself if nothing changes; it must not be changed.
func (e Environment) Stored(spec *corev1.PodSpec) *corev1.PodSpec {
	class := e.runtimeClass(spec)
	if len(e.LimitRanges) == 0 && class == nil && isStored(spec) {
		return spec
	}
	out := *spec
	out.Containers = e.storedContainers(spec.Containers)
	out.InitContainers = e.storedContainers(spec.InitContainers)
	if spec.Overhead != nil {
		out.Overhead = normalizedList(spec.Overhead)
	}
	if class != nil {
		applyRuntimeClass(&out, class)
	}
	if pod := spec.Resources; pod != nil && len(pod.Requests)+len(pod.Limits) > 0 {
		out.Resources = storedPodResources(&out)
	}
	return &out
}

// isStored reports whether the spec alone, without LimitRanges and RuntimeClasses, is already as the API server would
// store it. That is the usual case, as job APIs write requests.
func isStored(spec *corev1.PodSpec) bool {
	if spec.Overhead != nil || spec.Resources != nil {
		return false
	}
	for c := range Containers(spec) {
		for name, q := range c.Resources.Limits {
			if _, ok := c.Resources.Requests[name]; !ok || !isNormalized(q) {
				return false
			}
		}
		for _, q := range c.Resources.Requests {
			if !isNormalized(q) {
				return false
			}
		}
	}
	return true
}

func (e Environment) storedContainers(given []corev1.Container) []corev1.Container {
	out := slices.Clone(given)
	for i := range out {
		r := &out[i].Resources
		r.Limits, r.Requests = normalizedList(r.Limits), normalizedList(r.Requests)
		fill(r.Requests, r.Limits)
		for _, limitRange := range e.LimitRanges {
			for _, item := range limitRange.Spec.Limits {
				if item.Type == corev1.LimitTypeContainer {
					fill(r.Limits, item.Default)
					fill(r.Requests, item.DefaultRequest)
				}
			}
		}
		// The API server sets a LimitRange's default request wherever it has a default limit. For one that lacks it,
		// the limit must still be counted.
		fill(r.Requests, r.Limits)
	}
	return out
}

func (e Environment) runtimeClass(spec *corev1.PodSpec) *nodev1.RuntimeClass {
	if spec.RuntimeClassName == nil {
		return nil
	}
	return e.RuntimeClasses[*spec.RuntimeClassName]
}

// applyRuntimeClass adds the overhead and the scheduling of the class. An overhead in the spec stays: its author took
// it from the class.
func applyRuntimeClass(spec *corev1.PodSpec, class *nodev1.RuntimeClass) {
	if class.Overhead != nil && len(spec.Overhead) == 0 {
		spec.Overhead = normalizedList(class.Overhead.PodFixed)
	}
	if class.Scheduling == nil {
		return
	}
	spec.NodeSelector = Merged(spec.NodeSelector, class.Scheduling.NodeSelector)
	spec.Tolerations = slices.Clip(spec.Tolerations) // appending must not write to the given spec
	for _, t := range class.Scheduling.Tolerations {
		if !slices.ContainsFunc(spec.Tolerations, func(have corev1.Toleration) bool { return have.MatchToleration(&t) }) {
			spec.Tolerations = append(spec.Tolerations, t)
		}
	}
}

// storedPodResources returns the pod-level resources of a spec whose containers are as stored. Missing ones are the
// sums over the containers; huge pages cannot be overcommitted, so their requests follow the limits.
func storedPodResources(spec *corev1.PodSpec) *corev1.ResourceRequirements {
	pod := &corev1.Pod{Spec: *spec}
	requests := resource.AggregateContainerRequests(pod, resource.PodResourcesOptions{})
	limits := resource.AggregateContainerLimits(pod, resource.PodResourcesOptions{})
	out := &corev1.ResourceRequirements{
		Requests: normalizedList(spec.Resources.Requests),
		Limits:   normalizedList(spec.Resources.Limits),
		Claims:   spec.Resources.Claims,
	}
	for name, q := range limits {
		if _, requested := out.Requests[name]; isHugePages(name) && !requested {
			fill(out.Limits, corev1.ResourceList{name: q})
		}
	}
	for name, q := range requests {
		if resource.IsSupportedPodLevelResource(name) && !isHugePages(name) {
			fill(out.Requests, corev1.ResourceList{name: q})
		}
	}
	for name, q := range out.Limits {
		if resource.IsSupportedPodLevelResource(name) {
			fill(out.Requests, corev1.ResourceList{name: q})
		}
	}
	for name, request := range out.Requests {
		if !resource.IsSupportedPodLevelResource(name) || !allLimit(spec, name) {
			continue
		}
		limit := limits[name]
		if request.Cmp(limit) > 0 {
			limit = request
		}
		fill(out.Limits, corev1.ResourceList{name: limit})
	}
	return out
}

// allLimit reports whether every container has a limit for the resource.
func allLimit(spec *corev1.PodSpec, name corev1.ResourceName) bool {
	lacks := func(c corev1.Container) bool { _, has := c.Resources.Limits[name]; return !has }
	return !slices.ContainsFunc(spec.Containers, lacks) && !slices.ContainsFunc(spec.InitContainers, lacks)
}
