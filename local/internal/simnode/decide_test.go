package simnode

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// bound is the time at which the pods of these tests are bound. It is not a whole second, unlike the API's times.
var bound = time.Date(2026, 3, 1, 12, 0, 0, 700_000_000, time.UTC)

// podWith returns a pod as kube-scheduler leaves it: bound, without a status.
func podWith(options ...func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: "p", UID: "uid-p", ResourceVersion: "1", Generation: 1,
			Annotations: map[string]string{},
		},
		Spec: corev1.PodSpec{
			NodeName:      "sim-00000",
			RestartPolicy: corev1.RestartPolicyNever,
			Containers:    []corev1.Container{{Name: "main", Image: "train"}},
		},
		Status: corev1.PodStatus{
			Phase:      corev1.PodPending,
			Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, ObservedGeneration: 1}},
		},
	}
	for _, option := range options {
		option(pod)
	}
	return pod
}

func lasting(duration string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Annotations[AnnotationDuration] = duration }
}

func exiting(code string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Annotations[AnnotationExitCode] = code }
}

func restarting(policy corev1.RestartPolicy) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.RestartPolicy = policy }
}

func container(c corev1.Container) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.Containers = append(p.Spec.Containers, c) }
}

func initContainer(name string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.InitContainers = append(p.Spec.InitContainers, corev1.Container{Name: name})
	}
}

func sidecar(name string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.InitContainers = append(p.Spec.InitContainers,
			corev1.Container{Name: name, RestartPolicy: ptr.To(corev1.ContainerRestartPolicyAlways)})
	}
}

func deleted(p *corev1.Pod) {
	p.DeletionTimestamp = ptr.To(metav1.NewTime(bound))
	p.DeletionGracePeriodSeconds = ptr.To[int64](30)
}

func withFinalizerLeft(p *corev1.Pod) {
	deleted(p)
	p.DeletionGracePeriodSeconds = ptr.To[int64](0)
}

func inPhase(phase corev1.PodPhase) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Status.Phase = phase }
}

func TestAPodRunsAsItsAnnotationsSay(t *testing.T) {
	tests := map[string]struct {
		pod *corev1.Pod
		// after lists the times since the binding at which the pod is evaluated; change is made before the last of
		// them.
		after  []time.Duration
		change func(*corev1.Pod)
		want   string
	}{
		"a newly bound pod runs for five seconds by default": {
			pod: podWith(), after: []time.Duration{0},
			want: "write Running ready; main running; again in 5s",
		},
		"a duration with milliseconds": {
			pod: podWith(lasting("300ms")), after: []time.Duration{0, 0},
			want: "nothing Running ready; main running; again in 300ms",
		},
		"a running pod is not written": {
			pod: podWith(lasting("1m")), after: []time.Duration{0, 30 * time.Second},
			want: "nothing Running ready; main running; again in 30s",
		},
		"a pod succeeds after its duration": {
			pod: podWith(), after: []time.Duration{0, 5 * time.Second},
			want: "write Succeeded; main exited 0 Completed after 5s",
		},
		"a pod ends at its time although it is evaluated later": {
			pod: podWith(), after: []time.Duration{0, time.Hour},
			want: "write Succeeded; main exited 0 Completed after 5s",
		},
		"a pod fails with its exit code": {
			pod: podWith(exiting("3")), after: []time.Duration{0, 5 * time.Second},
			want: "write Failed; main exited 3 Error after 5s",
		},
		"a pod of zero duration ends in its first write": {
			pod: podWith(lasting("0s")), after: []time.Duration{0},
			want: "write Succeeded; main exited 0 Completed after 0s",
		},
		"an ended pod is not written": {
			pod: podWith(), after: []time.Duration{0, 5 * time.Second, 6 * time.Second},
			want: "nothing Succeeded; main exited 0 Completed after 5s",
		},
		"a shorter duration set during the run counts from the start": {
			pod: podWith(lasting("1h")), after: []time.Duration{0, 2 * time.Second}, change: lasting("1s"),
			want: "write Succeeded; main exited 0 Completed after 1s",
		},
		"an invalid duration fails the pod before it starts": {
			pod: podWith(lasting("5 minutes")), after: []time.Duration{0},
			want: `write Failed InvalidSimulation: annotation muster.dev/sim-duration: "5 minutes" is not a duration; write one such as 90s or 1h30m`,
		},
		"a negative duration is invalid": {
			pod: podWith(lasting("-1s")), after: []time.Duration{0},
			want: `write Failed InvalidSimulation: annotation muster.dev/sim-duration: "-1s" is not a duration; write one such as 90s or 1h30m`,
		},
		"an invalid exit code fails the running pod": {
			pod: podWith(), after: []time.Duration{0, time.Second}, change: exiting("256"),
			want: `write Failed InvalidSimulation: annotation muster.dev/sim-exit-code: "256" is not an exit code; write a number from 0 to 255; main exited 143 Error after 1s`,
		},
		"a deadline before the end": {
			pod:   podWith(lasting("1h"), func(p *corev1.Pod) { p.Spec.ActiveDeadlineSeconds = ptr.To[int64](60) }),
			after: []time.Duration{0, 0},
			want:  "nothing Running ready; main running; again in 1m0s",
		},
		"a pod fails at its deadline": {
			pod:   podWith(lasting("1h"), func(p *corev1.Pod) { p.Spec.ActiveDeadlineSeconds = ptr.To[int64](60) }),
			after: []time.Duration{0, time.Minute},
			want:  "write Failed DeadlineExceeded: Pod was active on the node longer than the specified deadline; main exited 143 Error after 1m0s",
		},
		"a running pod with init containers and sidecars": {
			pod: podWith(initContainer("fetch"), sidecar("proxy")), after: []time.Duration{0},
			want: "write Running ready; fetch exited 0 Completed after 0s; proxy running; main running; again in 5s",
		},
		"sidecars end with the pod": {
			pod: podWith(sidecar("proxy"), exiting("1")), after: []time.Duration{0, 5 * time.Second},
			want: "write Failed; proxy exited 0 Completed after 5s; main exited 1 Error after 5s",
		},
		"a closed readiness gate": {
			pod:   podWith(func(p *corev1.Pod) { p.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: "a.b/c"}} }),
			after: []time.Duration{0},
			want:  "write Running; main running; again in 5s",
		},
		"a deleted pod fails at once": {
			pod: podWith(lasting("1h")), after: []time.Duration{0, time.Minute}, change: deleted,
			want: "write Failed; main exited 143 Error after 1m0s",
		},
		"a pod deleted before it started fails without having run": {
			pod: podWith(), after: []time.Duration{0}, change: deleted,
			want: "write Failed",
		},
		"a deleted pod that has ended is removed": {
			pod: podWith(inPhase(corev1.PodFailed)), after: []time.Duration{0}, change: deleted,
			want: "remove Failed",
		},
		"a deleted pod with finalizers": {
			pod: podWith(inPhase(corev1.PodFailed)), after: []time.Duration{0}, change: withFinalizerLeft,
			want: "nothing Failed",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) { check(t, test.pod, test.after, test.change, test.want) })
	}
}

func TestARunningPodHasAllThatAKubeletReports(t *testing.T) {
	pod := podWith(initContainer("fetch"))
	evaluate(t, pod, place{hostIP: "198.18.0.1", podIP: "10.128.0.9"}, bound)
	start := metav1.NewTime(bound.Truncate(time.Second).Local())
	yes := func(kind corev1.PodConditionType) corev1.PodCondition {
		return corev1.PodCondition{Type: kind, Status: corev1.ConditionTrue, ObservedGeneration: 1, LastTransitionTime: start}
	}
	want := corev1.PodStatus{
		ObservedGeneration: 1,
		Phase:              corev1.PodRunning,
		Conditions: []corev1.PodCondition{
			{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, ObservedGeneration: 1},
			yes(corev1.PodReadyToStartContainers), yes(corev1.PodInitialized), yes(corev1.PodReady), yes(corev1.ContainersReady),
		},
		HostIP: "198.18.0.1", HostIPs: []corev1.HostIP{{IP: "198.18.0.1"}},
		PodIP: "10.128.0.9", PodIPs: []corev1.PodIP{{IP: "10.128.0.9"}},
		StartTime: &start,
		InitContainerStatuses: []corev1.ContainerStatus{{
			Name: "fetch", Ready: true, Started: ptr.To(false), ContainerID: "simulated://uid-p/fetch/0",
			State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
				Reason: "Completed", StartedAt: start, FinishedAt: start, ContainerID: "simulated://uid-p/fetch/0",
			}},
		}},
		ContainerStatuses: []corev1.ContainerStatus{{
			Name: "main", Image: "train", Ready: true, Started: ptr.To(true), ContainerID: "simulated://uid-p/main/0",
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: start}},
		}},
	}
	if diff := cmp.Diff(want, pod.Status); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
}

func TestAPodOnTheHostNetworkHasTheAddressOfItsNode(t *testing.T) {
	pod := podWith(func(p *corev1.Pod) { p.Spec.HostNetwork = true })
	evaluate(t, pod, place{hostIP: "198.18.0.1"}, bound)
	if pod.Status.PodIP != "198.18.0.1" {
		t.Errorf("pod address = %q, want that of the node, 198.18.0.1", pod.Status.PodIP)
	}
}

func TestARestartedProcessTakesTheRecordedStart(t *testing.T) {
	pod := podWith(lasting("1m"))
	evaluate(t, pod, place{}, bound)
	got := decide(pod, place{}, bound.Add(10*time.Second))
	want := bound.Truncate(time.Second).Add(time.Minute)
	if got.action != nothing || !got.due.Equal(want) {
		t.Errorf("action = %d, due %s, want none until %s", got.action, got.due, want)
	}
}

func TestStatusChangedByAnotherWriterIsCorrected(t *testing.T) {
	// The node lifecycle controller sets pods not ready on a lost node; when the node is back, they are ready again.
	pod := podWith(lasting("1m"))
	evaluate(t, pod, place{}, bound)
	for i := range pod.Status.Conditions {
		if pod.Status.Conditions[i].Type == corev1.PodReady {
			pod.Status.Conditions[i].Status = corev1.ConditionFalse
		}
	}
	d := evaluate(t, pod, place{stepped: bound}, bound.Add(time.Second))
	const want = "write Running ready; main running; again in 59s"
	if got := summary(d, pod, bound.Add(time.Second)); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// check evaluates the pod at each of the times, with the status that each decision wrote, and compares the last
// decision.
func check(t *testing.T, pod *corev1.Pod, after []time.Duration, change func(*corev1.Pod), want string) {
	t.Helper()
	at := place{hostIP: "198.18.0.1", podIP: "10.128.0.1"}
	var got string
	for i, since := range after {
		if i == len(after)-1 && change != nil {
			change(pod)
		}
		now := bound.Add(since)
		d := evaluate(t, pod, at, now)
		got = summary(d, pod, now)
		at.stepped = d.stepped
		if again := decide(pod, at, now); again.action == writeStatus {
			t.Errorf("decision after %s is not stable (-first +second):\n%s",
				since, cmp.Diff(&pod.Status, again.status))
		}
	}
	if got != want {
		t.Errorf("after %s:\n got %s\nwant %s", after, got, want)
	}
}

// evaluate decides about the pod and gives it the status that the API would store.
func evaluate(t *testing.T, pod *corev1.Pod, at place, now time.Time) decision {
	t.Helper()
	d := decide(pod, at, now)
	small, err := stripPod(pod.DeepCopy())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(d, decide(small.(*corev1.Pod), at, now), cmp.AllowUnexported(decision{})); diff != "" {
		t.Errorf("the pod in the cache leads to another decision (-whole +cached):\n%s", diff)
	}
	if d.action != writeStatus {
		return d
	}
	written, err := json.Marshal(d.status)
	if err != nil {
		t.Fatal(err)
	}
	pod.Status = corev1.PodStatus{}
	if err := json.Unmarshal(written, &pod.Status); err != nil {
		t.Fatal(err)
	}
	return d
}

// summary formats a decision, and the pod after it, in a line.
func summary(d decision, pod *corev1.Pod, now time.Time) string {
	head := []string{[]string{"nothing", "write", "remove"}[d.action], string(pod.Status.Phase)}
	if pod.Status.Reason != "" {
		head = append(head, pod.Status.Reason+": "+pod.Status.Message)
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
			head = append(head, "ready")
		}
	}
	parts := []string{strings.Join(head, " ")}
	for _, c := range append(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses...) {
		text := c.Name
		switch state := c.State; {
		case state.Running != nil:
			text += " running"
		case state.Waiting != nil:
			text += " waiting " + state.Waiting.Reason
		case state.Terminated != nil:
			text += fmt.Sprintf(" exited %d %s after %s", state.Terminated.ExitCode, state.Terminated.Reason,
				state.Terminated.FinishedAt.Sub(state.Terminated.StartedAt.Time))
		}
		if c.RestartCount > 0 {
			text += fmt.Sprintf(", restarts: %d", c.RestartCount)
		}
		parts = append(parts, text)
	}
	if !d.due.IsZero() {
		parts = append(parts, "again in "+d.due.Sub(now).String())
	}
	return strings.Join(parts, "; ")
}
