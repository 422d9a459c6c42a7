package podspec

import (
	"iter"

	corev1 "k8s.io/api/core/v1"

	"github.com/musterhq/muster/internal/pointers"
)

// Containers returns all containers of the pod, first the init containers. The caller may change them.
func Containers(spec *corev1.PodSpec) iter.Seq[*corev1.Container] {
	return func(yield func(*corev1.Container) bool) {
		for _, list := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
			for i := range list {
				if !yield(&list[i]) {
					return
				}
			}
		}
	}
}

// Statuses visits the statuses of all containers of the pod, init containers first.
func Statuses(pod *corev1.Pod) iter.Seq[*corev1.ContainerStatus] {
	return func(yield func(*corev1.ContainerStatus) bool) {
		for _, list := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
			for status := range pointers.To(list) {
				if !yield(status) {
					return
				}
			}
		}
	}
}
