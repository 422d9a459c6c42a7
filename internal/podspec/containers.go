package podspec

import (
	"iter"

	corev1 "k8s.io/api/core/v1"
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
