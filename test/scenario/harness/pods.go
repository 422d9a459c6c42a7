package harness

import (
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// UntilOnlyPods waits until the namespace has pods of these names and no others.
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

// EndReplica ends the pod of a replica, of its attempt (0 is the first), once it runs on a simulated machine: its container
// main has ended with the exit code.
func (w *World) EndReplica(name string, attempt, code int) {
	w.Helper()
	var pod corev1.Pod
	w.UntilPods(fmt.Sprintf("%s runs in attempt %d", name, attempt), func(pods map[string]corev1.Pod) bool {
		pod = pods[name]
		return pod.Annotations["muster.dev/restarts"] == strconv.Itoa(attempt) && pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp == nil
	})
	ended := pod.DeepCopy()
	ended.Status.Phase = corev1.PodSucceeded
	if code != 0 {
		ended.Status.Phase = corev1.PodFailed
	}
	ended.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", Image: "example.com/trainer", State: corev1.ContainerState{
		Terminated: &corev1.ContainerStateTerminated{ExitCode: int32(code), Reason: "Ended", StartedAt: metav1.Now(), FinishedAt: metav1.Now()}}}}
	if err := w.Client.Status().Patch(w.Context(), ended, client.MergeFrom(&pod)); err != nil {
		w.Fatalf("ending %s: %v", name, err)
	}
}
