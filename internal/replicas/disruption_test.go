package replicas

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestNeverRan: what kubelets report of pods whose programs did not run, and of others.
func TestNeverRan(t *testing.T) {
	container := func(s corev1.ContainerState) corev1.PodStatus {
		return corev1.PodStatus{Phase: corev1.PodFailed, Reason: "Terminated",
			ContainerStatuses: []corev1.ContainerStatus{{State: s}}}
	}
	ended := func(reason string, code int32) corev1.ContainerState {
		return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: reason, ExitCode: code}}
	}
	again := container(corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{}})
	again.ContainerStatuses[0].RestartCount = 1
	initFailed := container(corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{}})
	initFailed.InitContainerStatuses = []corev1.ContainerStatus{{State: ended("Error", 1)}}
	for name, tc := range map[string]struct {
		status corev1.PodStatus
		want   bool
	}{
		"rejected by its node": {corev1.PodStatus{Phase: corev1.PodFailed,
			Reason: "UnexpectedAdmissionError"}, true},
		"still waiting":                   {container(corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{}}), true},
		"unknown to the kubelet":          {container(ended("ContainerStatusUnknown", 137)), true},
		"its program failed":              {container(ended("Error", 1)), false},
		"its command does not exist":      {container(ended("StartError", 128)), false},
		"was restarted":                   {again, false},
		"its init container failed":       {initFailed, false},
		"it reached its own deadline":     {corev1.PodStatus{Phase: corev1.PodFailed, Reason: "DeadlineExceeded"}, false},
		"nothing is known of its failure": {corev1.PodStatus{Phase: corev1.PodFailed}, false},
		"it is pending":                   {corev1.PodStatus{Phase: corev1.PodPending, Reason: "Waiting"}, false},
	} {
		pod := &corev1.Pod{Status: tc.status}
		if got := Disrupted(pod); got != tc.want {
			t.Errorf("%s: disrupted %v, want %v", name, got, tc.want)
		}
	}
}

// TestRejectedPodStaysForAWhile, so that a node that rejects every pod costs few requests.
func TestRejectedPodStaysForAWhile(t *testing.T) {
	created := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "job-worker-0", UID: "u",
		CreationTimestamp: metav1.NewTime(created)},
		Status: corev1.PodStatus{Phase: corev1.PodFailed, Reason: "OutOfcpu"}}
	observe := func() *Roster {
		return Observe("job", []Group{{Name: "worker", Count: 1}}, func(string, int32) Record { return Record{} },
			[]*corev1.Pod{pod})
	}
	if lost, next := observe().RestartDisrupted(created.Add(9 * time.Second)); len(lost) > 0 ||
		!next.Equal(created.Add(rejectionDelay)) {
		t.Errorf("after 9 s %d pods are replaced, the next at %s; want none, and one at 10 s", len(lost), next)
	}
	if lost, _ := observe().RestartDisrupted(created.Add(rejectionDelay)); len(lost) != 1 {
		t.Errorf("after 10 s %d pods are replaced, want one", len(lost))
	}
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue}}
	if lost, _ := observe().RestartDisrupted(created); len(lost) != 1 {
		t.Errorf("%d evicted pods are replaced at once, want one", len(lost))
	}
}
