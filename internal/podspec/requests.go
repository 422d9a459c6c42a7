package podspec

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/resource"
)

// Requests is what one pod of the spec asks for where nothing but the spec matters.
// The list may be one of the spec's own: it must not be changed.
func Requests(spec corev1.PodSpec) corev1.ResourceList {
	return Total(Site{}.Stored(&spec))
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

// isPlain reports whether a pod asks for what its one container asks for.
func isPlain(spec *corev1.PodSpec) bool {
	return len(spec.Containers) == 1 && len(spec.InitContainers) == 0 && spec.Overhead == nil && spec.Resources == nil
}

func isHugePages(name corev1.ResourceName) bool {
	return strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix)
}
