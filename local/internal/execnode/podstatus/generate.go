package podstatus

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
	qos "k8s.io/kubernetes/pkg/apis/core/v1/helper/qos"
	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
	"k8s.io/kubernetes/pkg/kubelet/status"
	kubetypes "k8s.io/kubernetes/pkg/kubelet/types"
)

// Seen has the inputs of a pod's status.
type Seen struct {
	// Pod is the pod as the API server has it.
	Pod *corev1.Pod
	// Previous is the last status that this node computed, or the API server's if there is none.
	Previous corev1.PodStatus
	// Runtime is what the container runtime has of the pod.
	Runtime *kubecontainer.PodStatus
	// Over is set if no container of the pod runs or will run any more.
	Over bool
	// Failure, if not nil, makes the pod fail, whatever the state of its containers.
	Failure *Failure
	// Waiting returns why a container could not be started, if that was tried.
	Waiting func(container string) (reason, message string, attempted bool)
	// Probed sets the readiness of containers from their probes. It may be nil.
	Probed func(*corev1.PodStatus)
	HostIP string
}

// Failure is the reason why a pod fails.
type Failure struct{ Reason, Message string }

// Generate returns the status. It does not modify its argument.
func Generate(seen Seen) corev1.PodStatus {
	pod, previous := seen.Pod, &seen.Previous
	s := corev1.PodStatus{QOSClass: qos.GetPodQOS(pod)}
	addresses(&s, seen)
	restarting := kubecontainer.ShouldAllContainersRestart(pod, seen.Runtime, previous)
	s.ContainerStatuses = containers(seen, pod.Spec.Containers, previous.ContainerStatuses, false, restarting)
	s.InitContainerStatuses = containers(seen, pod.Spec.InitContainers, previous.InitContainerStatuses, true, restarting)
	s.EphemeralContainerStatuses = containers(seen, ephemeral(pod), previous.EphemeralContainerStatuses, false, restarting)

	all := slices.Concat(s.InitContainerStatuses, s.ContainerStatuses)
	s.Phase = phase(pod, all, seen.Over, kubecontainer.HasAnyActiveRegularContainerStarted(&pod.Spec, seen.Runtime))
	keepEnd(&s, seen)
	if seen.Failure != nil && !ended(pod.Status.Phase) {
		s.Phase, s.Reason, s.Message = corev1.PodFailed, seen.Failure.Reason, seen.Failure.Message
	}
	if seen.Probed != nil {
		seen.Probed(&s)
	}
	conditions(&s, seen)
	return s
}

func ephemeral(pod *corev1.Pod) []corev1.Container {
	var list []corev1.Container
	for _, container := range pod.Spec.EphemeralContainers {
		list = append(list, corev1.Container(container.EphemeralContainerCommon))
	}
	return list
}

// addresses keeps a pod's address after its network has been removed.
func addresses(s *corev1.PodStatus, seen Seen) {
	s.HostIP = seen.HostIP
	if ended(seen.Pod.Status.Phase) && seen.Previous.HostIP != "" {
		s.HostIP = seen.Previous.HostIP // the host that it ran on
	}
	s.HostIPs = []corev1.HostIP{{IP: s.HostIP}}
	switch {
	case len(seen.Runtime.IPs) > 0:
		s.PodIP = seen.Runtime.IPs[0]
	default:
		s.PodIP = seen.Previous.PodIP
	}
	if s.PodIP != "" {
		s.PodIPs = []corev1.PodIP{{IP: s.PodIP}}
	}
}

func ended(phase corev1.PodPhase) bool {
	return phase == corev1.PodFailed || phase == corev1.PodSucceeded
}

// keepEnd keeps a terminated pod in its phase, with the reason of that phase.
func keepEnd(s *corev1.PodStatus, seen Seen) {
	switch {
	case ended(seen.Pod.Status.Phase):
		s.Phase = seen.Pod.Status.Phase
	case !ended(s.Phase) && ended(seen.Previous.Phase):
		s.Phase = seen.Previous.Phase
	}
	if s.Phase == seen.Previous.Phase {
		s.Reason, s.Message = seen.Previous.Reason, seen.Previous.Message
		if s.Reason == "" {
			s.Reason = seen.Pod.Status.Reason
		}
		if s.Message == "" {
			s.Message = seen.Pod.Status.Message
		}
	}
}

// conditions sets the conditions that the kubelet owns and keeps the others.
func conditions(s *corev1.PodStatus, seen Seen) {
	pod, previous := seen.Pod, &seen.Previous
	for _, condition := range pod.Status.Conditions {
		if !kubetypes.PodConditionByKubelet(condition.Type) {
			s.Conditions = append(s.Conditions, condition)
		}
	}
	all := slices.Concat(s.InitContainerStatuses, s.ContainerStatuses)
	s.Conditions = append(s.Conditions,
		status.GeneratePodReadyToStartContainersCondition(pod, previous, seen.Runtime),
		status.GeneratePodInitializedCondition(pod, previous, all, s.Phase),
		status.GeneratePodReadyCondition(pod, previous, s.Conditions, all, s.Phase),
		status.GenerateContainersReadyCondition(pod, previous, all, s.Phase),
		corev1.PodCondition{
			Type: corev1.PodScheduled, Status: corev1.ConditionTrue,
			ObservedGeneration: podutil.CalculatePodConditionObservedGeneration(previous, pod.Generation, corev1.PodScheduled),
		},
	)
	if podutil.AllContainersCouldRestart(&pod.Spec) {
		s.Conditions = append(s.Conditions,
			status.GenerateAllContainersRestartingCondition(pod, seen.Runtime, previous, s.Phase))
	}
}
