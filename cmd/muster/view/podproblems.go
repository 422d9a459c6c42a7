package view

import (
	"fmt"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/musterhq/muster/internal/podproblem"
)

// podProblems groups the problems of the pods of a job, one entry for all pods with the same reason and message.
// lacksPods says that the job has fewer ready pods than it needs. isGone reports whether a node is known not to exist.
func podProblems(pods []corev1.Pod, claims podproblem.Claims, mounts podproblem.Mounts, lacksPods bool,
	isGone func(node string) bool, now time.Time) []PodProblem {
	ofItself := func(pod *corev1.Pod) (reason, message string) { return complaint(pod, isGone, now) }
	if lacksPods {
		return problemsOf(podproblem.OfUnready(pods, claims, mounts, ofItself, now))
	}
	return problemsOf(podproblem.Known(pods, claims, mounts, ofItself))
}

func problemsOf(found []podproblem.Problem) []PodProblem {
	problems := make([]PodProblem, 0, len(found))
	for _, p := range found {
		problems = append(problems, PodProblem{Pods: p.Pods, Example: p.Example, Reason: p.Reason, Message: p.Message})
	}
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
	if ignoredByScheduler(pod, now) {
		if group := pod.Spec.SchedulingGroup; group != nil && group.PodGroupName != nil {
			return "NotScheduled", fmt.Sprintf("the scheduler %s has not tried it yet: it waits until the PodGroup %s exists and has as many pods as must run together",
				pod.Spec.SchedulerName, *group.PodGroupName)
		}
		return "NotScheduled", fmt.Sprintf("the scheduler %s has ignored it so far: check that this scheduler runs, and spec.schedulerName of the pod",
			pod.Spec.SchedulerName)
	}
	return podproblem.Of(pod, now)
}

// schedulerLatency is how long a scheduler may take to report on a new pod before the pod counts as ignored.
const schedulerLatency = 5 * time.Second

// ignoredByScheduler reports whether no scheduler has reported on the pod. A scheduler that does not exist, such as
// that of an uninstalled Volcano, leaves no other trace.
func ignoredByScheduler(pod *corev1.Pod, now time.Time) bool {
	return pod.Spec.NodeName == "" && pod.Status.Phase == corev1.PodPending &&
		now.Sub(pod.CreationTimestamp.Time) > schedulerLatency &&
		!slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.PodScheduled })
}

// whyTerminating says why a pod still exists after its deletion grace period, or without its node: its quota is held
// for as long, unless it has ended. Empty for one that has ended and that no foreign finalizer keeps.
func whyTerminating(pod *corev1.Pod, nodeIsGone bool) string {
	const keeps = "; its quota is kept until the pod is gone"
	held := slices.DeleteFunc(slices.Clone(pod.Finalizers),
		func(f string) bool { return f == batchv1.JobTrackingFinalizer })
	ended := pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
	switch {
	case len(held) > 0 && ended:
		return "it has ended, and its finalizer " + strings.Join(held, ", ") + " keeps it; it holds no quota"
	case len(held) > 0:
		return "its finalizer " + strings.Join(held, ", ") + " keeps it" + keeps
	case ended:
		return ""
	case nodeIsGone:
		return "its node " + pod.Spec.NodeName +
			" does not exist any more: Kubernetes removes the pod within a minute or so" + keeps
	}
	return "node " + pod.Spec.NodeName +
		" has not reported that the pod ended: the node may be unreachable or gone" + keeps +
		" (if you are sure that the node is off: delete it, which removes its pods within a minute or so, or taint it node.kubernetes.io/out-of-service)"
}

// PodProblem is a problem and the number of pods that have it.
type PodProblem struct {
	Pods    int    `json:"pods"`
	Example string `json:"example"` // the name of one of them
	Reason  string `json:"reason"`
	Message string `json:"message,omitempty"`
}
