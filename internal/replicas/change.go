package replicas

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Container is how a container of a pod fares.
type Container struct {
	Name string
	// State is Waiting, Running or Terminated.
	State string
	// ExitCode of one that is Terminated.
	ExitCode int32
}

// States of a Container.
const (
	ContainerWaiting    = "Waiting"
	ContainerRunning    = "Running"
	ContainerTerminated = "Terminated"
)

// Containers are those of the pod, but for init containers, as far as its node has
// told.
func Containers(pod *corev1.Pod) []Container {
	out := make([]Container, 0, len(pod.Status.ContainerStatuses))
	for i := range pod.Status.ContainerStatuses {
		s := &pod.Status.ContainerStatuses[i]
		out = append(out, Container{Name: s.Name, State: stateOf(&s.State), ExitCode: exitCodeOf(&s.State)})
	}
	return out
}

func stateOf(s *corev1.ContainerState) string {
	switch {
	case s.Terminated != nil:
		return ContainerTerminated
	case s.Running != nil:
		return ContainerRunning
	}
	return ContainerWaiting
}

func exitCodeOf(s *corev1.ContainerState) int32 {
	if s.Terminated != nil {
		return s.Terminated.ExitCode
	}
	return 0
}

// Failure is the exit code of the first container of the pod that has failed, or, with
// ok false, why the pod failed without one. Sidecars fail no pod: their node ends them
// when all else has ended.
func Failure(pod *corev1.Pod) (exitCode int32, why string, ok bool) {
	for _, list := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for i := range list {
			if ended := list[i].State.Terminated; ended != nil && ended.ExitCode != 0 && !isSidecar(pod, list[i].Name) {
				return ended.ExitCode, "", true
			}
		}
	}
	switch s := &pod.Status; {
	case s.Reason != "" && s.Message != "":
		return 0, s.Reason + ": " + s.Message, false
	case s.Reason != "":
		return 0, s.Reason, false
	}
	return 0, "no container says why", false
}

// isSidecar reports whether the container of the name is an init container that runs
// beside the others.
func isSidecar(pod *corev1.Pod, name string) bool {
	return slices.ContainsFunc(pod.Spec.InitContainers, func(c corev1.Container) bool {
		return c.Name == name && c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
	})
}

// Matters reports whether anything that counts here differs between two states of a
// pod. It takes as long as the pod has containers.
func Matters(before, after *corev1.Pod) bool {
	return before.UID != after.UID || IsGoing(before) != IsGoing(after) ||
		phaseOf(before) != phaseOf(after) || isReady(before) != isReady(after) ||
		!slices.EqualFunc(before.Status.ContainerStatuses, after.Status.ContainerStatuses, sameContainer)
}

func sameContainer(a, b corev1.ContainerStatus) bool {
	return a.Name == b.Name && stateOf(&a.State) == stateOf(&b.State) && exitCodeOf(&a.State) == exitCodeOf(&b.State)
}

func seconds(n int64) time.Duration { return time.Duration(n) * time.Second }
