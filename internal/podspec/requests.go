package podspec

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/resource"
)

// Requests is what one pod of the spec asks for where nothing but the spec matters.
// The list may be one of the spec's own: it must not be changed.
func Requests(spec corev1.PodSpec) corev1.ResourceList {
	return Total(Environment{}.Stored(&spec))
}

// Total is what one pod asks for, as the scheduler counts it: init containers,
// sidecars, overhead and pod-level resources included. The spec is one that Stored
// returned. The list may be one of the spec's own: it must not be changed.
func Total(stored *corev1.PodSpec) corev1.ResourceList {
	if isPlain(stored) {
		return stored.Containers[0].Resources.Requests
	}
	return resource.PodRequests(&corev1.Pod{Spec: *stored}, resource.PodResourcesOptions{})
}

// Taken is what a pod that is there takes of its node, as kube-scheduler counts it: while a container is being resized,
// the more of what it has and what it wants. The list may be one of the pod's own: it must not be changed.
func RequestsOnNode(pod *corev1.Pod) corev1.ResourceList {
	if isPlain(&pod.Spec) && !isResizing(pod.Status.ContainerStatuses) {
		return pod.Spec.Containers[0].Resources.Requests
	}
	return resource.PodRequests(pod, resource.PodResourcesOptions{UseStatusResources: true})
}

// isResizing reports whether a container's status may say more of its resources than its spec.
func isResizing(statuses []corev1.ContainerStatus) bool {
	return slices.ContainsFunc(statuses, func(s corev1.ContainerStatus) bool { return s.Resources != nil || len(s.AllocatedResources) > 0 })
}

// isPlain reports whether a pod asks for what its one container asks for.
func isPlain(spec *corev1.PodSpec) bool {
	return len(spec.Containers) == 1 && len(spec.InitContainers) == 0 && spec.Overhead == nil && spec.Resources == nil
}

func isHugePages(name corev1.ResourceName) bool {
	return strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix)
}
