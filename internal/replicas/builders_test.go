package replicas

import (
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/musterhq/muster/api/muster"
)

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// podBuilder builds a pod as the API server returns it.
type podBuilder struct{ *corev1.Pod }

// PodOf returns a new pod of the attempt.
func podOf(name string, attempt int) podBuilder {
	return podBuilder{&corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Name: name, UID: "uid", CreationTimestamp: metav1.NewTime(now),
		Annotations: map[string]string{muster.RestartsAnnotation: strconv.Itoa(attempt)}}}}
}

func (b podBuilder) bound() podBuilder { b.Spec.NodeName = "n"; return b }

func (b podBuilder) running() podBuilder {
	b.bound().Status.Phase = corev1.PodRunning
	b.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	b.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "c", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(now)}}}}
	return b
}

// ended ends the pod with the exit code, at that time after its creation.
func (b podBuilder) ended(code int32, after time.Duration) podBuilder {
	b.running().Status.Phase = corev1.PodSucceeded
	if code != 0 {
		b.Status.Phase = corev1.PodFailed
	}
	b.Status.Conditions = nil
	b.Status.ContainerStatuses[0].State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, FinishedAt: metav1.NewTime(now.Add(after))}}
	return b
}

// removed marks the pod as being removed by its kubelet at that time.
func (b podBuilder) removed(after time.Duration) podBuilder {
	b.DeletionTimestamp = ptr.To(metav1.NewTime(now.Add(after)))
	b.DeletionGracePeriodSeconds = ptr.To[int64](0)
	return b
}

// deleted marks the pod as deleted at that time, with a grace period of 30 seconds.
func (b podBuilder) deleted(after time.Duration) podBuilder {
	b.DeletionTimestamp = ptr.To(metav1.NewTime(now.Add(after + 30*time.Second)))
	b.DeletionGracePeriodSeconds = ptr.To[int64](30)
	return b
}
