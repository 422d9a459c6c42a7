package simnode

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
	"k8s.io/utils/ptr"
)

const (
	// exitedOnSIGTERM is the exit code of a process that does not handle SIGTERM.
	exitedOnSIGTERM = 128 + 15

	reasonCompleted = "Completed"
	reasonError     = "Error"
	reasonBackOff   = "CrashLoopBackOff"
)

// Backoff of restarts, as the kubelet has it: the first is immediate, the second waits firstBackOff after the exit,
// each later one twice as long, up to maxBackOff; a run of backOffForgotten resets it.
const (
	firstBackOff     = 10 * time.Second
	maxBackOff       = 5 * time.Minute
	backOffForgotten = 2 * maxBackOff
)

// startInitContainers sets the status of init containers as it is once a pod is up: completed or, for sidecars,
// running.
func (k *kubelet) startInitContainers() {
	if len(k.status.InitContainerStatuses) == len(k.pod.Spec.InitContainers) {
		return
	}
	k.status.InitContainerStatuses = nil
	for i := range k.pod.Spec.InitContainers {
		container := &k.pod.Spec.InitContainers[i]
		status := corev1.ContainerStatus{Name: container.Name, Image: container.Image}
		k.begin(&status)
		if !podutil.IsRestartableInitContainer(container) {
			k.exit(&status, k.now, 0)
			status.Ready = true // which for an init container means: has succeeded
		}
		k.status.InitContainerStatuses = append(k.status.InitContainerStatuses, status)
	}
}

// runContainers advances each container to its present state, and returns the time of the next change among them.
func (k *kubelet) runContainers(b behavior) (due time.Time) {
	old := k.status.ContainerStatuses
	k.status.ContainerStatuses = make([]corev1.ContainerStatus, len(k.pod.Spec.Containers))
	for i := range k.pod.Spec.Containers {
		container := &k.pod.Spec.Containers[i]
		status := &k.status.ContainerStatuses[i]
		if known, ok := podutil.GetContainerStatus(old, container.Name); ok {
			*status = known
		} else {
			*status = corev1.ContainerStatus{Name: container.Name, Image: container.Image}
		}
		due = earlier(due, k.runContainer(container, status, b))
	}
	return due
}

// runContainer takes the container through all steps that are due. Every step back to an earlier state takes some time,
// so there are few.
func (k *kubelet) runContainer(container *corev1.Container, status *corev1.ContainerStatus,
	b behavior) (due time.Time) {
	for {
		last := lastRun(status)
		switch {
		case status.State.Running != nil:
			end := k.exact(status.State.Running.StartedAt).Add(b.duration)
			if k.now.Before(end) {
				return end
			}
			k.exit(status, end, b.exitCode)
		case last == nil:
			k.begin(status)
		case !podutil.ContainerShouldRestart(*container, k.pod.Spec, last.ExitCode):
			status.State = corev1.ContainerState{Terminated: last}
			return time.Time{}
		default:
			wait := backOff(status.RestartCount, last.FinishedAt.Sub(last.StartedAt.Time))
			if again := k.exact(last.FinishedAt).Add(wait); k.now.Before(again) {
				k.wait(status, last, wait)
				return again
			}
			status.RestartCount++
			status.LastTerminationState = corev1.ContainerState{Terminated: last}
			k.begin(status)
		}
	}
}

// lastRun is how the container ended that does not run now; nil if it never ran.
func lastRun(status *corev1.ContainerStatus) *corev1.ContainerStateTerminated {
	if status.State.Terminated != nil {
		return status.State.Terminated
	}
	return status.LastTerminationState.Terminated
}

// backOff is how long after its exit a container is started again that has been so restarts times before, and ran for
// ran the last time.
func backOff(restarts int32, ran time.Duration) time.Duration {
	if restarts == 0 || ran > backOffForgotten {
		return 0
	}
	wait := firstBackOff
	for ; restarts > 1 && wait < maxBackOff; restarts-- {
		wait *= 2
	}
	return min(wait, maxBackOff)
}

func (k *kubelet) begin(status *corev1.ContainerStatus) {
	status.State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(k.now)}}
	status.ContainerID = fmt.Sprintf("simulated://%s/%s/%d", k.pod.UID, status.Name, status.RestartCount)
	status.Ready, status.Started = true, ptr.To(true)
	// What started in this decision started at this instant, not at the whole second of its API time.
	k.at.stepped = k.now
}

// exit ends a running container at its end time, which is not after now: a process does not run longer because the
// driver is late.
func (k *kubelet) exit(status *corev1.ContainerStatus, end time.Time, code int32) {
	reason := reasonCompleted
	if code != 0 {
		reason = reasonError
	}
	status.State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
		ExitCode:    code,
		Reason:      reason,
		StartedAt:   status.State.Running.StartedAt,
		FinishedAt:  metav1.NewTime(end),
		ContainerID: status.ContainerID,
	}}
	status.Ready, status.Started = false, ptr.To(false)
}

func (k *kubelet) wait(status *corev1.ContainerStatus, last *corev1.ContainerStateTerminated, wait time.Duration) {
	status.LastTerminationState = corev1.ContainerState{Terminated: last}
	status.State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{
		Reason: reasonBackOff,
		Message: fmt.Sprintf("back-off %s restarting failed container=%s pod=%s_%s(%s)",
			wait, status.Name, k.pod.Name, k.pod.Namespace, k.pod.UID),
	}}
}

// stop stops a container in any state: a running one exits now, a waiting one keeps the status of its last run.
func (k *kubelet) stop(status *corev1.ContainerStatus, code int32) {
	switch last := lastRun(status); {
	case status.State.Running != nil:
		k.exit(status, k.now, code)
	case last != nil:
		status.State = corev1.ContainerState{Terminated: last}
	}
}

// stopContainers terminates, with SIGTERM, everything that still runs.
func (k *kubelet) stopContainers() {
	for i := range k.status.ContainerStatuses {
		k.stop(&k.status.ContainerStatuses[i], exitedOnSIGTERM)
	}
	for i := range k.status.InitContainerStatuses {
		k.stop(&k.status.InitContainerStatuses[i], exitedOnSIGTERM)
	}
}

// stopSidecars stops sidecars once the main containers have ended; they exit cleanly.
func (k *kubelet) stopSidecars() {
	for i := range k.status.InitContainerStatuses {
		k.stop(&k.status.InitContainerStatuses[i], 0)
	}
}
