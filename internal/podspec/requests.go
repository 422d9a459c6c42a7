package podspec

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/resource"
)

// Requests is what one pod of the spec asks for, as the scheduler counts it:
// init containers, sidecars, overhead and pod-level resources included. A limit
// without a request stands for one, as the API server will default it.
func Requests(spec corev1.PodSpec) corev1.ResourceList {
	pod := &corev1.Pod{Spec: *spec.DeepCopy()}
	for i := range pod.Spec.InitContainers {
		limitsAsRequests(&pod.Spec.InitContainers[i].Resources)
	}
	for i := range pod.Spec.Containers {
		limitsAsRequests(&pod.Spec.Containers[i].Resources)
	}
	return resource.PodRequests(pod, resource.PodResourcesOptions{})
}

func limitsAsRequests(r *corev1.ResourceRequirements) {
	for name, limit := range r.Limits {
		if _, ok := r.Requests[name]; ok {
			continue
		}
		if r.Requests == nil {
			r.Requests = corev1.ResourceList{}
		}
		r.Requests[name] = limit
	}
}
