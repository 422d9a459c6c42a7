package podspec

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/resource"

	"github.com/musterhq/muster/internal/pointers"
)

// Requests returns the requests of one pod of the spec, without LimitRanges and RuntimeClasses. The list may be one of
// the spec's own and must not be changed.
func Requests(spec corev1.PodSpec) corev1.ResourceList {
	return Total(Environment{}.Stored(&spec))
}

// Total returns the requests of one pod as the scheduler counts them: with init containers, sidecars, overhead and
// pod-level resources. The spec must be one that Stored returned. The list may be one of the spec's own and must not be
// changed.
func Total(stored *corev1.PodSpec) corev1.ResourceList {
	if isPlain(stored) {
		return stored.Containers[0].Resources.Requests
	}
	return resource.PodRequests(&corev1.Pod{Spec: *stored}, resource.PodResourcesOptions{})
}

// RequestsOnNode returns what an existing pod occupies on its node, as kube-scheduler counts it: while a container is
// resized, the larger of its current and desired resources. No policy looks at a pod that no job made, so its
// quantities may be extreme: they are normalized as in Stored. The list may be one of the pod's own lists and must not
// be changed.
func RequestsOnNode(pod *corev1.Pod) corev1.ResourceList {
	if isPlain(&pod.Spec) && !isResizing(pod.Status.ContainerStatuses) {
		return normalizedOrSame(pod.Spec.Containers[0].Resources.Requests)
	}
	return resource.PodRequests(withNormalized(pod), resource.PodResourcesOptions{UseStatusResources: true})
}

// withNormalized returns the part of a pod that its requests on its node are computed from, with normalized quantities.
func withNormalized(pod *corev1.Pod) *corev1.Pod {
	out := &corev1.Pod{Spec: pod.Spec, Status: pod.Status}
	out.Spec.Containers, out.Spec.InitContainers = normalizedContainers(pod.Spec.Containers),
		normalizedContainers(pod.Spec.InitContainers)
	out.Spec.Overhead, out.Spec.Resources = normalizedOrSame(pod.Spec.Overhead), normalizedResources(pod.Spec.Resources)
	out.Status.ContainerStatuses = normalizedStatuses(pod.Status.ContainerStatuses)
	out.Status.InitContainerStatuses = normalizedStatuses(pod.Status.InitContainerStatuses)
	out.Status.AllocatedResources, out.Status.Resources = normalizedOrSame(pod.Status.AllocatedResources),
		normalizedResources(pod.Status.Resources)
	return out
}

func normalizedContainers(containers []corev1.Container) []corev1.Container {
	out := slices.Clone(containers)
	for of := range pointers.To(out) {
		of.Resources = *normalizedResources(&of.Resources)
	}
	return out
}

func normalizedStatuses(statuses []corev1.ContainerStatus) []corev1.ContainerStatus {
	out := slices.Clone(statuses)
	for of := range pointers.To(out) {
		of.AllocatedResources, of.Resources = normalizedOrSame(of.AllocatedResources),
			normalizedResources(of.Resources)
	}
	return out
}

func normalizedResources(r *corev1.ResourceRequirements) *corev1.ResourceRequirements {
	if r == nil {
		return nil
	}
	return &corev1.ResourceRequirements{Requests: normalizedOrSame(r.Requests), Limits: normalizedOrSame(r.Limits),
		Claims: r.Claims}
}

// HasEnded reports whether the pod has succeeded or failed: it uses nothing of its node any more.
func HasEnded(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// isResizing reports whether a container's status may hold resources that differ from its spec.
func isResizing(statuses []corev1.ContainerStatus) bool {
	return slices.ContainsFunc(statuses,
		func(s corev1.ContainerStatus) bool { return s.Resources != nil || len(s.AllocatedResources) > 0 })
}

// isPlain reports whether the pod requests exactly what its only container requests.
func isPlain(spec *corev1.PodSpec) bool {
	return len(spec.Containers) == 1 && len(spec.InitContainers) == 0 && spec.Overhead == nil && spec.Resources == nil
}

func isHugePages(name corev1.ResourceName) bool {
	return strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix)
}

// AddTimes adds each amount of the list, multiplied by times, to sum.
func AddTimes(sum, list corev1.ResourceList, times int32) {
	for name, amount := range list {
		amount = amount.DeepCopy()
		amount.Mul(int64(times))
		total := sum[name]
		total.Add(amount)
		sum[name] = total
	}
}
