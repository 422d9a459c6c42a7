package replicas

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/musterhq/muster/internal/pointers"
)

// rejectionDelay is how long a failed pod that ran no program stays: a node may reject its replacement at once, too,
// and that would cost requests to the API server, which all jobs share.
const rejectionDelay = 10 * time.Second

// RestartDisrupted returns the pods that were disrupted, for the caller to delete, and starts the attempts of their
// replicas again. This counts as no restart. next is when more of them may be replaced, zero if no more are.
func (r *Roster) RestartDisrupted(now time.Time) (disrupted []*corev1.Pod, next time.Time) {
	for replica := range pointers.To(r.Replicas) {
		if replica.Phase != Failed || replica.UID() == "" || !Disrupted(replica.Pod) {
			continue
		}
		replica.Phase, replica.NeedsRestart = Creating, false
		if due := replaceDue(replica.Pod, now); !due.IsZero() {
			next = Earlier(next, due)
			continue
		}
		disrupted = append(disrupted, replica.Pod)
	}
	return disrupted, next
}

// replaceDue returns when the disrupted pod may be replaced, zero for now.
func replaceDue(pod *corev1.Pod, now time.Time) time.Time {
	if isDisruptionTarget(pod) || IsTerminating(pod) {
		return time.Time{}
	}
	ended := EndOf(pod)
	if created := pod.CreationTimestamp.Time; ended.Before(created) {
		ended = created
	}
	if due := ended.Add(rejectionDelay); !ended.After(now) && now.Before(due) {
		return due
	}
	return time.Time{}
}

// Disrupted reports whether the pod has failed because of its node, or because it was preempted or evicted, or before
// it ran a program; that says nothing about its program.
func Disrupted(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodFailed && (isDisruptionTarget(pod) || NeverRan(pod))
}

func isDisruptionTarget(pod *corev1.Pod) bool {
	c := Condition(pod, corev1.DisruptionTarget)
	return c != nil && c.Status == corev1.ConditionTrue
}

// Reasons of the kubelet for a failed pod.
const (
	reasonDeadlineExceeded = "DeadlineExceeded"
	// reasonTerminated is that of a pod that was ended because its node is shut down, reasonNodeShutdown that of one that
	// was rejected for it.
	reasonTerminated   = "Terminated"
	reasonNodeShutdown = "NodeShutdown"
)

// NeverRan reports whether the pod has failed before one of its programs ran, other than init containers that have
// succeeded: its node has rejected it, or was shut down. A pod that has reached its own deadline, or whose command
// could not be started, fails again and again through its own fault.
func NeverRan(pod *corev1.Pod) bool {
	s := &pod.Status
	if s.Reason == "" || s.Reason == reasonDeadlineExceeded {
		return false
	}
	for c := range pointers.To(s.InitContainerStatuses) {
		if hasRun(c) && (c.State.Terminated == nil || c.State.Terminated.ExitCode != 0) {
			return false
		}
	}
	for container := range pointers.To(s.ContainerStatuses) {
		if hasRun(container) {
			return false
		}
	}
	return true
}

// hasRun reports whether the container was started, or could not be through its own fault. One that the kubelet has no
// record of has the exit code 137.
func hasRun(c *corev1.ContainerStatus) bool {
	ended := c.State.Terminated
	return c.State.Running != nil || c.RestartCount > 0 || c.LastTerminationState.Terminated != nil ||
		ended != nil && (ended.Reason != reasonStatusUnknown || !ended.StartedAt.IsZero())
}

// LostByNode reports whether the pod has failed because its node was shut down, or lost one of its containers, as far
// as its kubelet says so.
func LostByNode(pod *corev1.Pod) bool {
	if pod.Status.Phase != corev1.PodFailed {
		return false
	}
	if pod.Status.Reason == reasonTerminated || pod.Status.Reason == reasonNodeShutdown {
		return true
	}
	for container := range pointers.To(pod.Status.ContainerStatuses) {
		if ended := container.State.Terminated; ended != nil && ended.Reason == reasonStatusUnknown {
			return true
		}
	}
	return false
}
