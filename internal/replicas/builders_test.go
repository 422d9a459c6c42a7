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

// podOf returns a new pod of the attempt.
func podOf(name string, attempt int) podBuilder {
	return podBuilder{&corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Name: name, UID: "uid", CreationTimestamp: metav1.NewTime(now),
		Annotations: map[string]string{muster.RestartsAnnotation: strconv.Itoa(attempt)}}}}
}

func (p podBuilder) bound() podBuilder { p.Spec.NodeName = "n"; return p }

func (p podBuilder) running() podBuilder {
	p.bound().Status.Phase = corev1.PodRunning
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "c",
		State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(now)}}}}
	return p
}

// ended ends the pod with the exit code, at that time after its creation.
func (p podBuilder) ended(code int32, after time.Duration) podBuilder {
	p.running().Status.Phase = corev1.PodSucceeded
	if code != 0 {
		p.Status.Phase = corev1.PodFailed
	}
	p.Status.Conditions = nil
	p.Status.ContainerStatuses[0].State =
		corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code,
			FinishedAt: metav1.NewTime(now.Add(after))}}
	return p
}

// removed marks the pod as being removed by its kubelet at that time.
func (p podBuilder) removed(after time.Duration) podBuilder {
	p.DeletionTimestamp = ptr.To(metav1.NewTime(now.Add(after)))
	p.DeletionGracePeriodSeconds = ptr.To[int64](0)
	return p
}

// deleted marks the pod as deleted at that time, with a grace period of 30 seconds.
func (p podBuilder) deleted(after time.Duration) podBuilder {
	p.DeletionTimestamp = ptr.To(metav1.NewTime(now.Add(after + 30*time.Second)))
	p.DeletionGracePeriodSeconds = ptr.To[int64](30)
	return p
}
