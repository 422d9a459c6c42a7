package execnode

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/musterhq/muster/local/internal/execnode/podstatus"
)

// Reasons of pods that cannot run on this node, in their conditions, status and events. They are listed in
// docs/start/local-nodes.md.
const (
	// reasonNoCommand: a container relies on its image's command.
	reasonNoCommand = "CommandMissing"
	// reasonNoMounts: a container mounts a volume, and this machine lets only root make mounts.
	reasonNoMounts = "VolumeMountsNeedRoot"
	// reasonUnsupported: the pod asks for something that a process of this machine cannot have.
	reasonUnsupported = "UnsupportedByLocalNode"
)

// refusal is why a pod cannot run here, and never will.
type refusal struct {
	podstatus.Failure
	// final: the pod fails. Pods that restart always wait instead: their controller would replace each failed one,
	// endlessly.
	final bool
}

// refuseIfNeeded returns why a pod cannot run on a node whose containers may or may not have mounts, or nil.
func refuseIfNeeded(pod *corev1.Pod, mounts bool) *refusal {
	failure := whyNot(pod, mounts)
	if failure == nil {
		return nil
	}
	return &refusal{Failure: *failure, final: pod.Spec.RestartPolicy != corev1.RestartPolicyAlways}
}

func whyNot(pod *corev1.Pod, mounts bool) *podstatus.Failure {
	if ptr.Deref(pod.Spec.ShareProcessNamespace, false) {
		return unsupported("spec.shareProcessNamespace",
			"containers of a pod have no process namespace in common here; leave it out")
	}
	if pod.Spec.HostUsers != nil && !*pod.Spec.HostUsers {
		return unsupported("spec.hostUsers: false", "there are no user namespaces of pods here; leave it out")
	}
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			if failure := whyNotContainer(&list[i], mounts); failure != nil {
				return failure
			}
		}
	}
	return nil
}

func whyNotContainer(container *corev1.Container, mounts bool) *podstatus.Failure {
	if len(container.Command) == 0 {
		return &podstatus.Failure{Reason: reasonNoCommand, Message: fmt.Sprintf(
			"container %q has no command: this node runs commands as processes of this machine and never pulls images (%s); set the container's command, or send the pod to another node",
			container.Name, container.Image)}
	}
	if len(container.VolumeDevices) > 0 {
		return unsupported("volumeDevices of container "+container.Name,
			"block devices cannot be handed to a process; use a volume mount")
	}
	if mounts {
		return nil
	}
	for _, mount := range container.VolumeMounts {
		if !isServiceAccountMount(mount) {
			return &podstatus.Failure{Reason: reasonNoMounts, Message: fmt.Sprintf(
				"container %q mounts volume %q at %s: this machine lets only root make mounts; start the cluster as root, allow unprivileged user namespaces, or take the mount out",
				container.Name, mount.Name, mount.MountPath)}
		}
	}
	return nil
}

func unsupported(what, why string) *podstatus.Failure {
	return &podstatus.Failure{Reason: reasonUnsupported, Message: what + " is not supported by this node: " + why}
}

// serviceAccountPath is where the API server's admission adds a token to every pod.
const serviceAccountPath = "/var/run/secrets/kubernetes.io/serviceaccount"

// isServiceAccountMount reports whether the API server added the mount: a pod must not fail because of this mount.
func isServiceAccountMount(mount corev1.VolumeMount) bool {
	return mount.MountPath == serviceAccountPath && strings.HasPrefix(mount.Name, "kube-api-access-")
}

// apply writes a refusal into a status: in its conditions, and in each container that does not run.
func (r *refusal) apply(status *corev1.PodStatus) {
	status.Reason, status.Message = r.Reason, r.Message
	for i := range status.Conditions {
		condition := &status.Conditions[i]
		if condition.Type == corev1.PodReady || condition.Type == corev1.ContainersReady {
			condition.Status, condition.Reason, condition.Message = corev1.ConditionFalse, r.Reason, r.Message
		}
	}
	for _, list := range [][]corev1.ContainerStatus{status.InitContainerStatuses, status.ContainerStatuses} {
		for i := range list {
			if waiting := list[i].State.Waiting; waiting != nil {
				waiting.Reason, waiting.Message = r.Reason, r.Message
			}
		}
	}
}
