package podspec

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/resource"
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
// resized, the larger of its current and desired resources. The list may be one of the pod's own and must not be
// changed.
func RequestsOnNode(pod *corev1.Pod) corev1.ResourceList {
	if isPlain(&pod.Spec) && !isResizing(pod.Status.ContainerStatuses) {
		return pod.Spec.Containers[0].Resources.Requests
	}
	return resource.PodRequests(pod, resource.PodResourcesOptions{UseStatusResources: true})
}

// HasEnded reports whether the pod has succeeded or failed: it uses nothing of its node any more.
func HasEnded(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// isResizing reports whether a container's status may hold resources that differ from its spec.
func isResizing(statuses []corev1.ContainerStatus) bool {
	return slices.ContainsFunc(statuses, func(s corev1.ContainerStatus) bool { return s.Resources != nil || len(s.AllocatedResources) > 0 })
}

// isPlain reports whether the requests of the pod are those of its only container.
func isPlain(spec *corev1.PodSpec) bool {
	return len(spec.Containers) == 1 && len(spec.InitContainers) == 0 && spec.Overhead == nil && spec.Resources == nil
}

func isHugePages(name corev1.ResourceName) bool {
	return strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix)
}
