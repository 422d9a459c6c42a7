package view

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/musterhq/muster/internal/podproblem"
)

// hasNode says that no node is gone.
func hasNode(string) bool { return false }

// A kubelet ends its messages with the name of the pod.
func TestPodsThatCrashAlikeAreOneProblem(t *testing.T) {
	crashing := func(name string) corev1.Pod {
		return corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ml", UID: types.UID("uid-" + name)},
			Spec: corev1.PodSpec{NodeName: "n"},
			Status: corev1.PodStatus{Phase: corev1.PodRunning,
				ContainerStatuses: []corev1.ContainerStatus{{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{
					Reason:  "CrashLoopBackOff",
					Message: "back-off 20s restarting failed container=c pod=" + name + "_ml(uid-" + name + ")"}}}}}}
	}
	got := podProblems([]corev1.Pod{crashing("w-1"), crashing("w-0")}, podproblem.Claims{}, podproblem.Mounts{}, false,
		hasNode, at(60).Time)
	want := []PodProblem{{Pods: 2, Example: "w-0", Reason: "CrashLoopBackOff",
		Message: "back-off 20s restarting failed container=c"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("problems differ (-want +got):\n%s", diff)
	}
}

// kube-scheduler reports nothing on pods that it holds back for their PodGroup, as if it did not run.
func TestPodsHeldBackForTheirPodGroupAreNotIgnored(t *testing.T) {
	pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "w-0", CreationTimestamp: at(50)},
		Status: corev1.PodStatus{Phase: corev1.PodPending},
		Spec: corev1.PodSpec{SchedulerName: corev1.DefaultSchedulerName,
			SchedulingGroup: &corev1.PodSchedulingGroup{PodGroupName: ptr.To("gang")}}}
	got := podProblems([]corev1.Pod{pod}, podproblem.Claims{}, podproblem.Mounts{}, false, hasNode, at(60).Time)
	want := []PodProblem{{Pods: 1, Example: "w-0", Reason: "NotScheduled",
		Message: "the scheduler default-scheduler has not tried it yet: it waits until the PodGroup gang exists and has as many pods as must run together"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("problems differ (-want +got):\n%s", diff)
	}
}
