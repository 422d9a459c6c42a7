package node

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/musterhq/muster/test/node/machine"
)

func TestPodRunsOnTheKubeletAndItsLogsAreRead(t *testing.T) {
	w := newWorld(t)
	w.Create(&corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "one"},
		Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{
			Name: "main", Image: "busybox:1", Command: []string{"sh", "-c", "echo I am $(hostname); exit 3"}}}},
	})
	pod := w.untilPod("one", "has ended", func(pod *corev1.Pod) bool { return pod.Status.Phase == corev1.PodFailed })
	if pod.Spec.NodeName != machine.Name {
		t.Errorf("it ran on %s", pod.Spec.NodeName)
	}
	if code := pod.Status.ContainerStatuses[0].State.Terminated.ExitCode; code != 3 {
		t.Errorf("its exit code is %d", code)
	}
	if said := w.logs("one", "main"); said != "I am one\n" {
		t.Errorf("it said %q", said)
	}
}
