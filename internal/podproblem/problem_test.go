package podproblem

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

var now = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// podWith returns a pod whose container main has this status.
func podWith(name string, status corev1.ContainerStatus) corev1.Pod {
	status.Name = "main"
	return corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: name, UID: "u"},
		Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{status}}}
}

func ended(code int32, reason string) corev1.ContainerState {
	return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Reason: reason}}
}

func waiting(reason, message string) corev1.ContainerState {
	return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}
}

// runningFor returns the pod with a container that has run for so long and is not ready, and these probes.
func runningFor(d time.Duration, ready, startup *corev1.Probe) corev1.Pod {
	pod := podWith("p",
		corev1.ContainerStatus{State: corev1.ContainerState{
			Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(now.Add(-d))}},
			Started: ptr.To(startup == nil)})
	pod.Spec.Containers = []corev1.Container{{Name: "main", ReadinessProbe: ready, StartupProbe: startup}}
	return pod
}

func TestOf(t *testing.T) {
	http := &corev1.Probe{InitialDelaySeconds: 5, PeriodSeconds: 10,
		ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/healthz", Port: intstr.FromInt32(8080)}}}
	script :=
		&corev1.Probe{ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"/check", "now"}}}}
	unscheduled := corev1.Pod{
		Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse,
			Reason: "Unschedulable", Message: `persistentvolumeclaim "imagenet" not found`}}}}
	for name, tc := range map[string]struct {
		pod  corev1.Pod
		want string
	}{
		"no claim": {unscheduled, `Unschedulable: persistentvolumeclaim "imagenet" not found`},
		"no image": {podWith("p", corev1.ContainerStatus{State: waiting("ImagePullBackOff", `Back-off pulling image "x"`)}),
			`ImagePullBackOff: Back-off pulling image "x"`},
		"crashes again and again": {podWith("p",
			corev1.ContainerStatus{State: waiting("CrashLoopBackOff",
				"back-off 20s restarting failed container=main pod=p_ml(u)"),
				LastTerminationState: ended(1, "Error")}),
			"CrashLoopBackOff: container main: exit code 1; back-off 20s restarting failed container=main"},
		"out of memory again and again": {podWith("p",
			corev1.ContainerStatus{State: waiting("CrashLoopBackOff",
				"back-off 20s restarting failed container=main pod=p_ml(u)"),
				LastTerminationState: ended(137, "OOMKilled")}),
			"CrashLoopBackOff: container main: exit code 137, killed: out of memory; back-off 20s restarting failed container=main"},
		"out of memory": {podWith("p", corev1.ContainerStatus{State: ended(137, "OOMKilled")}),
			"OOMKilled: container main: exit code 137, killed: out of memory"},
		"killed": {podWith("p", corev1.ContainerStatus{State: ended(137, "Error")}),
			"Error: container main: exit code 137, killed"},
		"failed": {podWith("p", corev1.ContainerStatus{State: ended(2, "Error")}),
			"Error: container main: exit code 2"},
		"succeeded":     {podWith("p", corev1.ContainerStatus{State: ended(0, "Completed")}), ""},
		"being created": {podWith("p", corev1.ContainerStatus{State: waiting("ContainerCreating", "")}), ""},
		"readiness probe fails": {runningFor(time.Minute, http, nil),
			"NotReady: container main runs, and its readiness probe (GET /healthz of port 8080) does not succeed"},
		"startup probe fails": {runningFor(time.Minute, http, script),
			"NotReady: container main runs, and its startup probe (command /check) does not succeed"},
		"the probe is not due yet": {runningFor(10*time.Second, http, nil), ""},
		"no probe":                 {runningFor(time.Hour, nil, nil), ""},
	} {
		t.Run(name, func(t *testing.T) {
			reason, message := Of(&tc.pod, now)
			if got := (Problem{Reason: reason, Message: message}).String(); got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}

// TestRestarted: between two crashes a container runs, and its pod may even be ready.
func TestRestarted(t *testing.T) {
	runs := func(name string, ago time.Duration, last corev1.ContainerState) corev1.Pod {
		return podWith(name, corev1.ContainerStatus{Ready: true, RestartCount: 2, LastTerminationState: last,
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(now.Add(-ago))}}})
	}
	for name, tc := range map[string]struct {
		pod  corev1.Pod
		want []Problem
	}{
		"crashed a moment ago": {runs("p", time.Second, ended(3, "Error")),
			[]Problem{{1, "p", "Restarted", "container main: exit code 3"}}},
		"out of memory a moment ago": {runs("p", time.Second, ended(137, "OOMKilled")),
			[]Problem{{1, "p", "Restarted", "container main: exit code 137, killed: out of memory"}}},
		"has run for long since":      {runs("p", time.Hour, ended(3, "Error")), []Problem{}},
		"restarted after it was done": {runs("p", time.Second, ended(0, "Completed")), []Problem{}},
		"runs for the first time":     {runs("p", time.Second, corev1.ContainerState{}), []Problem{}},
		"ended for good, as Of tells it": {podWith("p",
			corev1.ContainerStatus{State: ended(1, "Error"), LastTerminationState: ended(3, "Error")}), []Problem{}},
	} {
		if diff := cmp.Diff(tc.want, restarted([]corev1.Pod{tc.pod}, now)); diff != "" {
			t.Errorf("%s: problems differ (-want +got):\n%s", name, diff)
		}
	}
}

func TestGroup(t *testing.T) {
	pods := []corev1.Pod{podWith("c", corev1.ContainerStatus{State: ended(2, "Error")}),
		podWith("b", corev1.ContainerStatus{State: ended(1, "Error")}),
		podWith("a", corev1.ContainerStatus{State: ended(1, "Error")}),
		podWith("d", corev1.ContainerStatus{State: ended(0, "Completed")})}
	want := []Problem{{2, "a", "Error", "container main: exit code 1"}, {1, "c", "Error", "container main: exit code 2"}}
	got := Group(pods, func(pod *corev1.Pod) (string, string) { return Of(pod, now) })
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("problems differ (-want +got):\n%s", diff)
	}
}
