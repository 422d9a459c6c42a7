package podproblem

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/musterhq/muster/internal/replicas"
)

// Problem is what keeps pods from being ready, and the number of pods that have it.
type Problem struct {
	Pods int
	// Example is the name of one of them, the first by name.
	Example         string
	Reason, Message string
}

// String returns the problem as one phrase.
func (p Problem) String() string {
	text := p.Reason
	if p.Reason != "" && p.Message != "" {
		text += ": "
	}
	return text + p.Message
}

// Group returns one Problem for all pods with the same reason and message, the most frequent first. of returns the
// reason and message of a pod, "" for a pod without a problem.
func Group(pods []corev1.Pod, of func(*corev1.Pod) (reason, message string)) []Problem {
	byText := map[[2]string]*Problem{}
	for i := range pods {
		reason, message := of(&pods[i])
		if reason == "" {
			continue
		}
		key := [2]string{reason, message}
		if byText[key] == nil {
			byText[key] = &Problem{Example: pods[i].Name, Reason: reason, Message: message}
		}
		problem := byText[key]
		problem.Pods++
		problem.Example = min(problem.Example, pods[i].Name)
	}
	problems := make([]Problem, 0, len(byText))
	for _, problem := range byText {
		problems = append(problems, *problem)
	}
	slices.SortFunc(problems, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(b.Pods, a.Pods), strings.Compare(a.Reason, b.Reason), strings.Compare(a.Message, b.Message))
	})
	return problems
}

// Of returns the first problem of a pod, in the order of its life: it is not scheduled, it failed as a whole, or one of
// its containers cannot start, ended, or is not ready. Both are "" for a pod without a problem.
func Of(pod *corev1.Pod, now time.Time) (reason, message string) {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return c.Reason, c.Message
		}
	}
	if pod.Status.Phase == corev1.PodFailed && pod.Status.Reason != "" {
		return pod.Status.Reason, pod.Status.Message
	}
	for _, status := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		if reason, message = ofContainer(pod, &status); reason != "" {
			return reason, message
		}
	}
	for i := range pod.Status.ContainerStatuses {
		if message = unready(pod, &pod.Status.ContainerStatuses[i], now); message != "" {
			return "NotReady", message
		}
	}
	return "", ""
}

// ofContainer returns why a container does not run. One that is restarted again and again says how it ended last.
func ofContainer(pod *corev1.Pod, status *corev1.ContainerStatus) (reason, message string) {
	if waiting := status.State.Waiting; waiting != nil && waiting.Message != "" {
		message = withoutPod(waiting.Message, pod)
		if last := status.LastTerminationState.Terminated; last != nil {
			message = endOf(status.Name, last) + "; " + message
		}
		return waiting.Reason, message
	}
	if ended := status.State.Terminated; ended != nil && ended.ExitCode != 0 {
		return ended.Reason, endOf(status.Name, ended)
	}
	return "", ""
}

// settled is how long a container must run until its last end counts no more: the kubelet's back-off is over after
// that.
const settled = 10 * time.Minute

// OfUnready returns the problems of the pods of a job that lacks ready pods, grouped. of returns the problem that a pod
// itself shows; claims and mounts add what is known of missing objects. If no pod has a problem by these, a container
// that failed and was restarted a short time ago counts as one: it may fail again and again, and of reports it only
// while it waits for its restart.
func OfUnready(pods []corev1.Pod, claims Claims, mounts Mounts, of func(*corev1.Pod) (reason, message string),
	now time.Time) []Problem {
	if problems := Known(pods, claims, mounts, of); len(problems) > 0 {
		return problems
	}
	return restarted(pods, now)
}

// Known returns the problems of pods, grouped: what of returns for a pod, and what claims and mounts tell of missing
// objects.
func Known(pods []corev1.Pod, claims Claims, mounts Mounts, of func(*corev1.Pod) (reason, message string)) []Problem {
	return Group(pods, func(pod *corev1.Pod) (reason, message string) {
		return claims.Of(pod, func(pod *corev1.Pod) (reason, message string) { return mounts.Of(pod, of) })
	})
}

// restarted returns the problems of pods of which a container failed and was restarted a short time ago.
func restarted(pods []corev1.Pod, now time.Time) []Problem {
	return Group(pods, func(pod *corev1.Pod) (reason, message string) {
		for _, status := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
			running, last := status.State.Running, status.LastTerminationState.Terminated
			if running != nil && last != nil && last.ExitCode != 0 && now.Sub(running.StartedAt.Time) < settled {
				return "Restarted", endOf(status.Name, last)
			}
		}
		return "", ""
	})
}

const (
	// oomKilled is the kubelet's reason for a container that was killed as it used more memory than its limit, or than
	// its node had.
	oomKilled = "OOMKilled"
	// killed is the exit code of a process that was killed, by whatever.
	killed = 137
)

// endOf says how a container ended.
func endOf(container string, ended *corev1.ContainerStateTerminated) string {
	text := fmt.Sprintf("container %s: exit code %d", container, ended.ExitCode)
	switch why := replicas.WhyNotStarted(ended); {
	case why != "":
		text += ": " + why
	case ended.Reason == oomKilled:
		text += ", killed: out of memory"
	case ended.ExitCode == killed:
		text += ", killed"
	}
	return text
}

// unready says which probe of a running container does not succeed, "" if none or if it has had no time for that. What
// the probe was answered is only in events of the pod.
func unready(pod *corev1.Pod, status *corev1.ContainerStatus, now time.Time) string {
	running := status.State.Running
	at := slices.IndexFunc(pod.Spec.Containers, func(c corev1.Container) bool { return c.Name == status.Name })
	if running == nil || status.Ready || at < 0 {
		return ""
	}
	c := &pod.Spec.Containers[at]
	kind, probe := "readiness", c.ReadinessProbe
	if c.StartupProbe != nil && (status.Started == nil || !*status.Started) {
		kind, probe = "startup", c.StartupProbe
	}
	if probe == nil ||
		now.Before(running.StartedAt.Add(time.Duration(probe.InitialDelaySeconds+max(1, probe.PeriodSeconds))*time.Second)) {
		return ""
	}
	return fmt.Sprintf("container %s runs, and its %s probe (%s) does not succeed", c.Name, kind,
		describe(&probe.ProbeHandler))
}

// describe names what a probe does.
func describe(h *corev1.ProbeHandler) string {
	switch {
	case h.HTTPGet != nil:
		return fmt.Sprintf("GET %s of port %s", cmp.Or(h.HTTPGet.Path, "/"), h.HTTPGet.Port.String())
	case h.TCPSocket != nil:
		return "port " + h.TCPSocket.Port.String()
	case h.GRPC != nil:
		return fmt.Sprintf("gRPC of port %d", h.GRPC.Port)
	case h.Exec != nil && len(h.Exec.Command) > 0:
		return "command " + h.Exec.Command[0]
	}
	return "command"
}

// withoutPod removes the name of the pod from the end of a kubelet's message, which would keep pods with the same
// problem apart.
func withoutPod(message string, pod *corev1.Pod) string {
	return strings.TrimSuffix(message, fmt.Sprintf(" pod=%s_%s(%s)", pod.Name, pod.Namespace, pod.UID))
}
