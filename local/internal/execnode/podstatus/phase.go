package podstatus

import (
	corev1 "k8s.io/api/core/v1"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
)

// tally counts a pod's containers by state.
type tally struct {
	initPending, initFailedForGood           int
	sidecarPending                           int
	running, waiting, unknown                int
	stopped, stoppedForGood, stoppedWithZero int
}

// phase returns the phase of a pod from the states of its containers. over is set if none will run any more;
// initialized, if a container other than the init containers has been started.
func phase(pod *corev1.Pod, statuses []corev1.ContainerStatus, over, initialized bool) corev1.PodPhase {
	t := &tally{}
	for i := range pod.Spec.InitContainers {
		container := &pod.Spec.InitContainers[i]
		status, known := podutil.GetContainerStatus(statuses, container.Name)
		if podutil.IsRestartableInitContainer(container) {
			t.countSidecar(status, known)
		} else {
			t.countInit(pod, container, status, known)
		}
	}
	for i := range pod.Spec.Containers {
		container := &pod.Spec.Containers[i]
		status, known := podutil.GetContainerStatus(statuses, container.Name)
		t.count(pod, container, status, known)
	}
	switch {
	case t.initFailedForGood > 0:
		return corev1.PodFailed
	case t.initPending > 0, t.sidecarPending > 0 && !initialized, t.waiting > 0:
		return corev1.PodPending
	case t.running > 0 && t.unknown == 0:
		return corev1.PodRunning
	case t.running == 0 && t.stopped > 0 && t.unknown == 0:
		return t.afterAllStopped(over)
	default:
		return corev1.PodPending
	}
}

func (t *tally) afterAllStopped(over bool) corev1.PodPhase {
	switch {
	case !over && t.stopped != t.stoppedForGood:
		return corev1.PodRunning // at least one is about to be restarted
	case t.stopped == t.stoppedWithZero:
		return corev1.PodSucceeded
	default:
		return corev1.PodFailed
	}
}

// restarts reports whether a container that ended so is restarted.
func restarts(pod *corev1.Pod, container *corev1.Container, end *corev1.ContainerStateTerminated) bool {
	return end.Reason == restartingAll || podutil.ContainerShouldRestart(*container, pod.Spec, end.ExitCode)
}

func (t *tally) countInit(pod *corev1.Pod, container *corev1.Container, status corev1.ContainerStatus, known bool) {
	end := status.State.Terminated
	if status.State.Waiting != nil {
		end = status.LastTerminationState.Terminated
	}
	if !known || end == nil {
		t.initPending++
		return
	}
	if end.ExitCode != 0 && !restarts(pod, container, end) {
		t.initFailedForGood++
	}
	if end.ExitCode != 0 && restarts(pod, container, end) {
		t.initPending++
	}
}

// countSidecar leaves out sidecars that have ended: they do not matter to the phase.
func (t *tally) countSidecar(status corev1.ContainerStatus, known bool) {
	switch {
	case !known:
		t.unknown++
	case status.State.Running != nil:
		if status.Started == nil || !*status.Started {
			t.sidecarPending++
		}
		t.running++
	case status.State.Terminated != nil:
	case status.State.Waiting != nil:
		if status.LastTerminationState.Terminated == nil {
			t.sidecarPending++
			t.waiting++
		}
	default:
		t.sidecarPending++
		t.unknown++
	}
}

func (t *tally) count(pod *corev1.Pod, container *corev1.Container, status corev1.ContainerStatus, known bool) {
	switch {
	case !known:
		t.unknown++
	case status.State.Running != nil:
		t.running++
	case status.State.Terminated != nil:
		t.stopped++
		if !restarts(pod, container, status.State.Terminated) {
			t.stoppedForGood++
		}
		if status.State.Terminated.ExitCode == 0 {
			t.stoppedWithZero++
		}
	case status.State.Waiting != nil:
		last := status.LastTerminationState.Terminated
		if last == nil {
			t.waiting++
			return
		}
		t.stopped++
		if !restarts(pod, container, last) {
			t.stoppedForGood++
		}
	default:
		t.unknown++
	}
}
