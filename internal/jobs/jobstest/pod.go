package jobstest

import (
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/musterhq/muster/api/muster"
)

// Now is the time at which tests plan.
var Now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// container is the name of the only container.
const container = "main"

// Pod builds a pod as the API server returns it. Its methods modify the pod and return it.
type Pod struct{ *corev1.Pod }

// NewPod returns a pod of the first attempt, created an hour ago and not bound yet.
func NewPod(name string) Pod {
	return Pod{&corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Name: name, Namespace: "ns", UID: types.UID(name + "-uid"), CreationTimestamp: metav1.NewTime(Now.Add(-time.Hour)),
		Annotations: map[string]string{muster.RestartsAnnotation: "0"}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: container}}}}}
}

// Attempt makes the pod belong to this attempt.
func (p Pod) Attempt(n int) Pod {
	p.Annotations[muster.RestartsAnnotation] = strconv.Itoa(n)
	return p
}

// Running makes the pod ready, and running for an hour.
func (p Pod) Running() Pod {
	p.Spec.NodeName = "n"
	p.Status.Phase = corev1.PodRunning
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: container, State: corev1.ContainerState{
		Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(Now.Add(-time.Hour))}}}}
	return p
}

// Ended makes the pod have ended a minute ago with this exit code.
func (p Pod) Ended(code int32) Pod { return p.EndedAt(code, Now.Add(-time.Minute)) }

// EndedAt makes the pod have ended at this time with this exit code.
func (p Pod) EndedAt(code int32, at time.Time) Pod {
	p.Running().Status.Phase = corev1.PodSucceeded
	if code != 0 {
		p.Status.Phase = corev1.PodFailed
	}
	p.Status.Conditions = nil
	p.Status.ContainerStatuses[0].State =
		corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, FinishedAt: metav1.NewTime(at)}}
	return p
}

// Disrupted gives the pod the condition DisruptionTarget, as if its node, or its place, was taken away.
func (p Pod) Disrupted() Pod {
	p.Status.Conditions = append(p.Status.Conditions,
		corev1.PodCondition{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue})
	return p
}

// Terminating marks the pod as deleted just now, with a grace period of half a minute.
func (p Pod) Terminating() Pod {
	p.DeletionTimestamp = ptr.To(metav1.NewTime(Now.Add(30 * time.Second)))
	p.DeletionGracePeriodSeconds = ptr.To[int64](30)
	return p
}

// Objects returns the pods as children of a job.
func Objects(pods ...Pod) []client.Object {
	var out []client.Object
	for _, p := range pods {
		out = append(out, p.Pod)
	}
	return out
}
