package view

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/musterhq/muster/internal/replicas"
)

// podProblems groups the problems of pods, one entry for all pods with the same reason and message. isGone reports
// whether a node is known not to exist.
func podProblems(pods []corev1.Pod, isGone func(node string) bool, now time.Time) []PodProblem {
	byComplaint := map[[2]string]*PodProblem{}
	for i := range pods {
		reason, message := complaint(&pods[i], isGone, now)
		if reason == "" {
			continue
		}
		key := [2]string{reason, message}
		problem := byComplaint[key]
		if problem == nil {
			problem = &PodProblem{Example: pods[i].Name, Reason: reason, Message: message}
			byComplaint[key] = problem
		}
		problem.Pods++
		problem.Example = min(problem.Example, pods[i].Name)
	}
	problems := make([]PodProblem, 0, len(byComplaint))
	for _, problem := range byComplaint {
		problems = append(problems, *problem)
	}
	slices.SortFunc(problems, func(a, b PodProblem) int {
		return cmp.Or(cmp.Compare(b.Pods, a.Pods), strings.Compare(a.Reason, b.Reason), strings.Compare(a.Message, b.Message))
	})
	return problems
}

// complaint returns the first problem of a pod, checked in the order of a pod's lifecycle; empty if it has none.
func complaint(pod *corev1.Pod, isGone func(node string) bool, now time.Time) (reason, message string) {
	if deleted := pod.DeletionTimestamp; deleted != nil {
		gone := isGone(pod.Spec.NodeName) // then nobody ends it within its grace period
		if why := whyTerminating(pod, gone); why != "" && (gone || now.After(deleted.Time)) {
			return "Terminating", why
		}
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return c.Reason, c.Message
		}
	}
	if ignoredByScheduler(pod, now) {
		if group := pod.Spec.SchedulingGroup; group != nil && group.PodGroupName != nil {
			return "NotScheduled", fmt.Sprintf("the scheduler %s has not tried it yet: it waits until the PodGroup %s exists and has as many pods as must run together",
				pod.Spec.SchedulerName, *group.PodGroupName)
		}
		return "NotScheduled", fmt.Sprintf("the scheduler %s has ignored it so far: check that this scheduler runs, and spec.schedulerName of the pod", pod.Spec.SchedulerName)
	}
	if pod.Status.Phase == corev1.PodFailed && pod.Status.Reason != "" {
		return pod.Status.Reason, pod.Status.Message
	}
	for _, status := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		if waiting := status.State.Waiting; waiting != nil && waiting.Message != "" {
			return waiting.Reason, withoutPod(waiting.Message, pod)
		}
		if ended := status.State.Terminated; ended != nil && ended.ExitCode != 0 {
			message = fmt.Sprintf("container %s: exit code %d", status.Name, ended.ExitCode)
			if why := replicas.WhyNotStarted(ended); why != "" {
				message += ": " + why
			}
			return ended.Reason, message
		}
	}
	return "", ""
}

// withoutPod removes the name of the pod from the end of a kubelet's message, which would keep pods with the same problem
// apart.
func withoutPod(message string, pod *corev1.Pod) string {
	return strings.TrimSuffix(message, fmt.Sprintf(" pod=%s_%s(%s)", pod.Name, pod.Namespace, pod.UID))
}

// schedulerLatency is how long a scheduler may take to report on a new pod before the pod counts as ignored.
const schedulerLatency = 5 * time.Second

// ignoredByScheduler reports whether no scheduler has reported on the pod. A scheduler that does not exist, such as that
// of an uninstalled Volcano, leaves no other trace.
func ignoredByScheduler(pod *corev1.Pod, now time.Time) bool {
	return pod.Spec.NodeName == "" && pod.Status.Phase == corev1.PodPending && now.Sub(pod.CreationTimestamp.Time) > schedulerLatency &&
		!slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.PodScheduled })
}

// whyTerminating says why a pod still exists after its deletion grace period, or without its node: its quota is held for
// as long, unless it has ended. Empty for one that has ended and that no foreign finalizer keeps.
func whyTerminating(pod *corev1.Pod, nodeIsGone bool) string {
	const keeps = "; its quota is kept until the pod is gone"
	held := slices.DeleteFunc(slices.Clone(pod.Finalizers), func(f string) bool { return f == batchv1.JobTrackingFinalizer })
	ended := pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
	switch {
	case len(held) > 0 && ended:
		return "it has ended, and its finalizer " + strings.Join(held, ", ") + " keeps it; it holds no quota"
	case len(held) > 0:
		return "its finalizer " + strings.Join(held, ", ") + " keeps it" + keeps
	case ended:
		return ""
	case nodeIsGone:
		return "its node " + pod.Spec.NodeName + " does not exist any more: Kubernetes removes the pod within a minute or so" + keeps
	}
	return "node " + pod.Spec.NodeName + " has not reported that the pod ended: the node may be unreachable or gone" + keeps +
		" (if you are sure that the node is off: delete it, which removes its pods within a minute or so, or taint it node.kubernetes.io/out-of-service)"
}
