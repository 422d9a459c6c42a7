package node

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/musterhq/muster/test/node/machine"
)

// TestPodRunsOnTheKubeletAndItsLogsAreRead runs a plain pod, and checks its node, exit code and log.
func TestPodRunsOnTheKubeletAndItsLogsAreRead(t *testing.T) {
	w := newWorld(t)
	w.Create(&corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "one"},
		Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{
			Name: "main", Image: "busybox:1", Command: []string{"sh", "-c", "echo I am $(hostname); exit 3"}}}},
	})
	pod := w.untilPod("one", "has failed", func(pod *corev1.Pod) bool { return pod.Status.Phase == corev1.PodFailed })
	if pod.Spec.NodeName != machine.Name {
		t.Errorf("the pod ran on node %s, want %s", pod.Spec.NodeName, machine.Name)
	}
	if code := pod.Status.ContainerStatuses[0].State.Terminated.ExitCode; code != 3 {
		t.Errorf("exit code = %d, want 3", code)
	}
	if log := w.logs("one", "main"); log != "I am one\n" {
		t.Errorf("log = %q, want %q", log, "I am one\n")
	}
}
