package view

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// podProblems gathers what pods complain of, one entry for all that say the same.
func podProblems(pods []corev1.Pod) []PodProblem {
	byComplaint := map[[2]string]*PodProblem{}
	for i := range pods {
		reason, message := complaint(&pods[i])
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

// complaint is the first thing that is wrong with a pod, in the order in which a pod's life can go wrong; empty if
// nothing is.
func complaint(pod *corev1.Pod) (reason, message string) {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return c.Reason, c.Message
		}
	}
	if pod.Status.Phase == corev1.PodFailed && pod.Status.Reason != "" {
		return pod.Status.Reason, pod.Status.Message
	}
	for _, status := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		if waiting := status.State.Waiting; waiting != nil && waiting.Message != "" {
			return waiting.Reason, waiting.Message
		}
		if ended := status.State.Terminated; ended != nil && ended.ExitCode != 0 {
			return ended.Reason, fmt.Sprintf("container %s: exit code %d", status.Name, ended.ExitCode)
		}
	}
	return "", ""
}
