package harness

import (
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// UntilOnlyPods waits until the namespace has exactly the pods of these names.
func (w *World) UntilOnlyPods(names ...string) {
	w.Helper()
	w.UntilPods(fmt.Sprintf("the pods are %v", names), func(pods map[string]corev1.Pod) bool {
		for _, name := range names {
			if _, ok := pods[name]; !ok {
				return false
			}
		}
		return len(pods) == len(names)
	})
}

// EndReplica ends the pod of a replica's attempt (the first is 0) with the exit code, once it runs on a simulated node.
func (w *World) EndReplica(name string, attempt, code int) {
	w.Helper()
	var pod corev1.Pod
	w.UntilPods(fmt.Sprintf("%s runs in attempt %d", name, attempt), func(pods map[string]corev1.Pod) bool {
		pod = pods[name]
		return pod.Annotations["muster.dev/restarts"] == strconv.Itoa(attempt) && pod.Status.Phase == corev1.PodRunning &&
			pod.DeletionTimestamp == nil
	})
	w.EndPod(pod, code)
}

// EndPod ends a pod on a simulated node: its containers terminate with the exit code.
func (w *World) EndPod(pod corev1.Pod, code int) {
	w.Helper()
	ended := pod.DeepCopy()
	reason := "Completed" // as a kubelet says
	ended.Status.Phase = corev1.PodSucceeded
	if code != 0 {
		reason, ended.Status.Phase = "Error", corev1.PodFailed
	}
	ended.Status.ContainerStatuses = nil
	for _, c := range pod.Spec.Containers {
		ended.Status.ContainerStatuses = append(ended.Status.ContainerStatuses,
			corev1.ContainerStatus{Name: c.Name, Image: c.Image, State: corev1.ContainerState{
				Terminated: &corev1.ContainerStateTerminated{ExitCode: int32(code), Reason: reason, StartedAt: metav1.Now(),
					FinishedAt: metav1.Now()}}})
	}
	if err := w.Client.Status().Patch(w.Context(), ended, client.MergeFrom(&pod)); err != nil {
		w.Fatalf("ending %s: %v", pod.Name, err)
	}
}

// SetPodStatus sets the status of a pod with a container main as a kubelet would: running and ready, or ended with the
// exit code.
func (w *World) SetPodStatus(pod corev1.Pod, phase corev1.PodPhase, exitCode int32) {
	w.Helper()
	after := pod.DeepCopy()
	now := metav1.Now()
	after.Status.Phase = phase
	state := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: exitCode, StartedAt: now,
		FinishedAt: now}}
	ready := corev1.ConditionFalse
	if phase == corev1.PodRunning {
		state, ready = corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}}, corev1.ConditionTrue
	}
	after.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", State: state,
		Ready: phase == corev1.PodRunning}}
	after.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: ready, LastTransitionTime: now}}
	if err := w.Client.Status().Patch(w.Context(), after, client.MergeFrom(&pod)); err != nil {
		w.Fatalf("setting the state of pod %s: %v", pod.Name, err)
	}
}
