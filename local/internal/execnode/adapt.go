package execnode

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// adapt returns the pod as the runtime manager is to see it. It differs from the user's only in what has no meaning for
// a process: images are never pulled, and without mounts there is no place for a termination message or a token.
func adapt(pod *corev1.Pod, mounts bool) *corev1.Pod {
	adapted := pod.DeepCopy()
	for _, list := range [][]corev1.Container{adapted.Spec.InitContainers, adapted.Spec.Containers} {
		for i := range list {
			adaptContainer(&list[i], mounts)
		}
	}
	for i := range adapted.Spec.EphemeralContainers {
		adaptContainer((*corev1.Container)(&adapted.Spec.EphemeralContainers[i].EphemeralContainerCommon), mounts)
	}
	if !mounts {
		adapted.Spec.Volumes = slices.DeleteFunc(adapted.Spec.Volumes, func(volume corev1.Volume) bool {
			return isServiceAccountMount(corev1.VolumeMount{Name: volume.Name, MountPath: serviceAccountPath})
		})
	}
	return adapted
}

func adaptContainer(container *corev1.Container, mounts bool) {
	container.ImagePullPolicy = corev1.PullNever
	if mounts {
		return
	}
	container.TerminationMessagePath = ""
	container.VolumeMounts = slices.DeleteFunc(container.VolumeMounts, isServiceAccountMount)
}
