package podproblem

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// mounting returns a pod without a node that mounts these claims, and of which kube-scheduler has said this.
func mounting(reason, message string, claims ...string) corev1.Pod {
	pod := corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodPending}}
	if reason != "" {
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse,
			Reason: reason, Message: message}}
	}
	for _, name := range claims {
		pod.Spec.Volumes = append(pod.Spec.Volumes,
			corev1.Volume{VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name}}})
	}
	return pod
}

// TestAMissingClaimIsNamed, whatever kube-scheduler says: of pods in a PodGroup it names none.
func TestAMissingClaimIsNamed(t *testing.T) {
	const hidden = `error in "DynamicResources" PodGroupPostFilter plugins: not found`
	known := Claims{Exists: map[string]bool{"data": true, "gone": false, "lost": false}}
	running := mounting("", "", "gone")
	running.Spec.NodeName = "n"
	for what, test := range map[string]struct {
		pod    corev1.Pod
		claims Claims
		want   string
	}{
		"the scheduler hides it": {mounting("SchedulerError", hidden, "data", "gone"), known,
			"Unschedulable: claim gone does not exist"},
		"the scheduler names it": {mounting("Unschedulable", `persistentvolumeclaim "gone" not found`, "gone"),
			known, "Unschedulable: claim gone does not exist"},
		"the scheduler has said nothing": {mounting("", "", "gone"), known, "Unschedulable: claim gone does not exist"},
		"mounted twice": {mounting("", "", "gone", "gone"), known,
			"Unschedulable: claim gone does not exist"},
		"two are missing": {mounting("SchedulerError", hidden, "lost", "gone"), known,
			"Unschedulable: claims lost, gone do not exist"},
		"all exist": {mounting("Unschedulable", "0/3 nodes are available", "data"), known,
			"Unschedulable: 0/3 nodes are available"},
		"nobody looked": {mounting("SchedulerError", hidden, "gone"), Claims{},
			"SchedulerError: " + hidden},
		"the pod has a node": {running, known, ""},
		"unreadable, and another reason": {mounting("Unschedulable", "0/3 nodes are available", "x"),
			Claims{Unread: map[string]bool{"x": true}}, "Unschedulable: 0/3 nodes are available"},
		"unreadable, and perhaps the cause": {mounting("SchedulerError", hidden, "x"),
			Claims{Unread: map[string]bool{"x": true}},
			"SchedulerError: " + hidden + " (kube-scheduler also says this if a claim does not exist. Your rights do not show whether these claims of the pod exist: x)"},
	} {
		reason, message := test.claims.Of(&test.pod, func(pod *corev1.Pod) (string, string) { return Of(pod, now) })
		if got := (Problem{Reason: reason, Message: message}).String(); got != test.want {
			t.Errorf("%s:\ngot  %s\nwant %s", what, got, test.want)
		}
	}
}

func TestNeededClaims(t *testing.T) {
	running := mounting("", "", "other")
	running.Spec.NodeName = "n"
	pods := []corev1.Pod{mounting("", "", "b", "a"), mounting("", "", "b", "c"), running}
	if got := neededClaims(pods, 10); !slices.Equal(got, []string{"a", "b", "c"}) {
		t.Errorf("claims = %s, want a, b and c", strings.Join(got, ", "))
	}
	if got := neededClaims(pods, 2); len(got) != 2 {
		t.Errorf("claims = %s, want two", strings.Join(got, ", "))
	}
}
