package replicas

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/musterhq/muster/internal/podspec"
	"github.com/musterhq/muster/internal/pointers"
)

// Container is the state of one container of a pod.
type Container struct {
	Name string
	// State is Waiting, Running or Terminated.
	State string
	// ExitCode is that of a Terminated container.
	ExitCode int32
}

// States of a Container.
const (
	ContainerWaiting    = "Waiting"
	ContainerRunning    = "Running"
	ContainerTerminated = "Terminated"
)

// Containers returns the states of the pod's containers, without init containers, as far as its kubelet has reported
// them.
func Containers(pod *corev1.Pod) []Container {
	out := make([]Container, 0, len(pod.Status.ContainerStatuses))
	for s := range pointers.To(pod.Status.ContainerStatuses) {
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

// Failure returns the exit code of the pod's first failed container, and what else is known of its end, empty if that
// is all; or, with ok false, the reason why the pod failed without one. Sidecars do not count: the kubelet stops them
// when all other containers have finished. Nor do containers that the kubelet has lost, or has never run: it gives them
// an exit code of its own, and the pod itself says why.
func Failure(pod *corev1.Pod) (exitCode int32, reason string, ok bool) {
	s := &pod.Status
	if ended := failedContainers(pod); len(ended) > 0 {
		return ended[0].ExitCode, whyEnded(ended[0]), true
	}
	switch {
	case s.Reason != "" && s.Message != "":
		return 0, s.Reason + ": " + s.Message, false
	case s.Reason != "":
		return 0, s.Reason, false
	}
	return 0, "no container reports why", false
}

// ExitCodes returns the exit codes of all failed containers of the pod, init containers first. Containers that Failure
// does not count are left out.
func ExitCodes(pod *corev1.Pod) []int32 {
	var codes []int32
	for _, ended := range failedContainers(pod) {
		codes = append(codes, ended.ExitCode)
	}
	return codes
}

// failedContainers returns how the containers ended that have failed and count as in Failure, init containers first.
func failedContainers(pod *corev1.Pod) []*corev1.ContainerStateTerminated {
	var out []*corev1.ContainerStateTerminated
	for status := range podspec.Statuses(pod) {
		ended := status.State.Terminated
		if ended == nil || ended.ExitCode == 0 || isSidecar(pod, status.Name) ||
			ended.Reason == reasonStatusUnknown && pod.Status.Reason != "" {
			continue
		}
		out = append(out, ended)
	}
	return out
}

// Reasons of the kubelet, and of container runtimes, for the end of a container.
const (
	reasonError              = "Error" // it ended with an exit code other than 0
	reasonStatusUnknown      = "ContainerStatusUnknown"
	reasonStartError         = "StartError"
	reasonContainerCannotRun = "ContainerCannotRun"
)

// whyEnded returns what is known of the end of a failed container beyond its exit code: OOMKilled, or why its command
// could not be started; empty if nothing is.
func whyEnded(ended *corev1.ContainerStateTerminated) string {
	switch why := WhyNotStarted(ended); {
	case ended.Reason == reasonError:
		return ""
	case why != "":
		return ended.Reason + ": " + why
	}
	return ended.Reason
}

// WhyNotStarted returns the runtime's message about a container whose command could not be started; empty for any
// other. Messages of started containers differ from pod to pod, and the log has them too.
func WhyNotStarted(ended *corev1.ContainerStateTerminated) string {
	if ended.Reason != reasonStartError && ended.Reason != reasonContainerCannotRun {
		return ""
	}
	first, _, _ := strings.Cut(ended.Message, "\n")
	return first
}

// FailureTexts are an API's words for how a replica has failed. Lost has verbs for the name of the pod and why it has
// failed, Failed for the name and the exit code, and Gone for the name of a pod that does not exist any more.
type FailureTexts struct{ Gone, Lost, Failed string }

// Of describes how the replica has failed.
func (f FailureTexts) Of(r *Replica) string {
	if r.Pod == nil {
		return fmt.Sprintf(f.Gone, r.Name)
	}
	code, why, ok := Failure(r.Pod)
	if !ok {
		return fmt.Sprintf(f.Lost, r.Name, why)
	}
	return WithReason(fmt.Sprintf(f.Failed, r.Name, code), why)
}

// WithReason appends to the text about an exit code what Failure returns beside that.
func WithReason(text, reason string) string {
	if reason == "" {
		return text
	}
	return text + " (" + reason + ")"
}

// isSidecar reports whether the named container is an init container that restarts always.
func isSidecar(pod *corev1.Pod, name string) bool {
	return slices.ContainsFunc(pod.Spec.InitContainers, func(c corev1.Container) bool {
		return c.Name == name && c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
	})
}

// Changed reports whether two states of a pod differ in anything that this package uses. Its cost is linear in the
// number of containers.
func Changed(before, after *corev1.Pod) bool {
	return before.UID != after.UID || IsTerminating(before) != IsTerminating(after) ||
		phaseOf(before) != phaseOf(after) || isReady(before) != isReady(after) ||
		!slices.EqualFunc(before.Status.ContainerStatuses, after.Status.ContainerStatuses, sameContainer)
}

func sameContainer(a, b corev1.ContainerStatus) bool {
	return a.Name == b.Name && stateOf(&a.State) == stateOf(&b.State) && exitCodeOf(&a.State) == exitCodeOf(&b.State)
}
