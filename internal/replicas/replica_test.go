package replicas

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"github.com/musterhq/muster/api/muster"
)

func TestReplicaPhase(t *testing.T) {
	const name = "job-worker-0"
	onFailure := Restart{OnFailure: true, Limit: 1}
	for what, test := range map[string]struct {
		remembered Record
		pod        *corev1.Pod
		policy     Restart
		want       Phase
		again      bool
		missing    bool
		outdated   bool
	}{
		"no pod":                    {want: Creating, missing: true},
		"an unbound pod":            {pod: podOf(name, 0).Pod, want: Creating},
		"a bound pod":               {pod: podOf(name, 0).bound().Pod, want: Pending},
		"a running pod":             {pod: podOf(name, 0).running().Pod, want: Running},
		"a succeeded pod":           {pod: podOf(name, 0).ended(0, time.Minute).Pod, want: Succeeded},
		"a failed pod, no restarts": {pod: podOf(name, 0).ended(1, time.Minute).Pod, want: Failed},
		"a failed pod, restarts left": {pod: podOf(name, 0).ended(1, time.Minute).Pod, policy: onFailure,
			want: Failed, again: true},
		"a failed pod, no restarts left": {remembered: Record{Restarts: 1},
			pod: podOf(name, 1).ended(1, time.Minute).Pod, policy: onFailure, want: Failed},
		"a succeeded pod, restarted on failure": {pod: podOf(name, 0).ended(0, time.Minute).Pod,
			policy: onFailure, want: Succeeded},
		"a succeeded pod, always restarted": {pod: podOf(name, 0).ended(0, time.Minute).Pod,
			policy: Restart{OnSuccess: true, Limit: 1}, want: Succeeded, again: true},
		"a pod of an earlier attempt": {remembered: Record{Restarts: 1},
			pod: podOf(name, 0).ended(1, time.Minute).Pod, policy: onFailure, want: Creating, outdated: true},
		"a terminating pod of an earlier attempt": {remembered: Record{Restarts: 1},
			pod: podOf(name, 0).running().deleted(0).Pod, want: Creating},
		"a deleted pod": {pod: podOf(name, 0).running().deleted(time.Minute).Pod, want: Running},
		"a pod that ended because it was deleted": {pod: podOf(name, 0).ended(0,
			time.Minute).deleted(time.Minute).Pod, want: Creating},
		"a pod that failed because it was deleted": {pod: podOf(name, 0).ended(143,
			2*time.Minute).deleted(time.Minute).Pod, policy: onFailure, want: Creating},
		"a pod that was deleted after it ended": {pod: podOf(name, 0).ended(0,
			time.Minute).deleted(2 * time.Minute).Pod, want: Succeeded},
		"a pod that ended because it was deleted, and is being removed": {pod: podOf(name, 0).ended(143,
			time.Minute).removed(2 * time.Minute).Pod, policy: onFailure, want: Creating},
		"a terminating pod, recorded as succeeded": {remembered: Record{Phase: Succeeded},
			pod: podOf(name, 0).ended(0, time.Minute).deleted(time.Minute).Pod, want: Succeeded},
		"no pod, recorded as succeeded": {remembered: Record{Phase: Succeeded}, want: Succeeded},
		"no pod, recorded as failed":    {remembered: Record{Phase: Failed}, policy: onFailure, want: Failed, again: true},
		"no pod, recorded as running": {remembered: Record{Phase: Running}, policy: onFailure,
			want: Creating, missing: true},
		"a pod without an attempt": {remembered: Record{Restarts: 1},
			pod: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name},
				Status: corev1.PodStatus{Phase: corev1.PodFailed}}, want: Failed},
		"a pod of an unknown attempt": {remembered: Record{Phase: Failed}, pod: podOf(name, 3).running().Pod, want: Running},
	} {
		t.Run(what, func(t *testing.T) {
			var pods []*corev1.Pod
			if test.pod != nil {
				pods = append(pods, test.pod)
			}
			roster := Observe("job", []Group{{Name: "worker", Count: 1, Restart: test.policy}},
				func(string, int32) Record { return test.remembered }, pods)
			r := roster.Get("worker", 0)
			if r.Phase != test.want || r.NeedsRestart != test.again {
				t.Errorf("phase = %s, NeedsRestart = %v; want %s, %v", r.Phase, r.NeedsRestart, test.want, test.again)
			}
			if got := len(roster.Missing()) == 1; got != test.missing {
				t.Errorf("missing = %v, want %v", got, test.missing)
			}
			if got := len(roster.Outdated()) == 1; got != test.outdated {
				t.Errorf("pod outdated = %v, want %v", got, test.outdated)
			}
		})
	}
}

func TestSurplusPodsAreOutdated(t *testing.T) {
	roster := Observe("job", []Group{{Name: "worker", Count: 1}}, func(string, int32) Record { return Record{} },
		[]*corev1.Pod{podOf("job-worker-1", 0).running().Pod, podOf("job-ps-0", 0).running().deleted(0).Pod})
	if got := roster.Outdated(); len(got) != 1 || got[0].Name != "job-worker-1" {
		t.Errorf("outdated pods = %v, want only job-worker-1: the other is terminating", got)
	}
	if !roster.Active() {
		t.Error("Active = false although pods run")
	}
	if roster.Get("worker", 1) != nil || roster.Get("ps", 0) != nil {
		t.Error("Get returned replicas that the groups do not have")
	}
}

func TestPodAndServiceMatch(t *testing.T) {
	job := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "job", Namespace: "ns", UID: "job-uid"}}
	kind := schema.GroupVersionKind{Kind: "GenericJob"}
	r := &Replica{Group: "worker", Index: 2, Name: "job-worker-2", Restarts: 3}
	template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"replica": "job-worker-2"}},
		Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyAlways}}
	pod := NewPod(job, kind, r, template)
	service := NewService(job, kind, r, "replica", []corev1.ServicePort{{Port: 80}})
	if pod.Name != service.Name || pod.Annotations[muster.RestartsAnnotation] != "3" ||
		pod.Spec.RestartPolicy != corev1.RestartPolicyNever ||
		pod.Labels[muster.JobUIDLabel] != "job-uid" || pod.OwnerReferences[0].UID != "job-uid" {
		t.Errorf("pod = %+v", pod)
	}
	if len(service.Spec.Selector) == 0 || !service.Spec.PublishNotReadyAddresses {
		t.Errorf("Service = %+v, want it to select the pod, also before that is ready", service.Spec)
	}
	for key, value := range service.Spec.Selector {
		if pod.Labels[key] != value {
			t.Errorf("the Service selects %s=%s, the pod has the labels %v", key, value, pod.Labels)
		}
	}
	if len(template.Labels) != 1 {
		t.Error("the given template was changed")
	}
}

// TestSidecarExitCodeIsNoFailure: the kubelet stops sidecars after all other containers have finished, often by a
// signal.
func TestSidecarExitCodeIsNoFailure(t *testing.T) {
	with := func(main int32) *corev1.Pod {
		b := podOf("p", 0).ended(main, 0)
		b.Status.Phase = corev1.PodFailed
		b.Spec.InitContainers = []corev1.Container{{Name: "fetch"},
			{Name: "mesh", RestartPolicy: ptr.To(corev1.ContainerRestartPolicyAlways)}}
		b.Status.InitContainerStatuses = []corev1.ContainerStatus{
			{Name: "fetch", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}},
			{Name: "mesh", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 143}}}}
		return b.Pod
	}
	if code, why, ok := Failure(with(3)); code != 3 || !ok {
		t.Errorf("Failure = %d, %q, want 3", code, why)
	}
	if code, why, ok := Failure(with(0)); ok {
		t.Errorf("Failure of a pod that failed for another reason = %d, %q, want none", code, why)
	}
	fetch := with(0)
	fetch.Status.InitContainerStatuses[0].State.Terminated.ExitCode = 4
	if code, why, ok := Failure(fetch); code != 4 || !ok {
		t.Errorf("Failure with a failed init container = %d, %q, want 4", code, why)
	}
}

// TestFailureSaysMoreThanTheExitCode: pods may be gone by the time their job is read, and 137 alone may be a container
// without memory, one that was killed, or one that never ran, because the node refused its pod.
func TestFailureSaysMoreThanTheExitCode(t *testing.T) {
	with := func(code int32, reason, message string) *corev1.Pod {
		b := podOf("p", 0).ended(code, 0)
		terminated := b.Status.ContainerStatuses[0].State.Terminated
		terminated.Reason, terminated.Message = reason, message
		return b.Pod
	}
	refused := func(reason, message string) *corev1.Pod {
		pod := with(137, "ContainerStatusUnknown", "The container could not be located when the pod was terminated")
		pod.Status.Reason, pod.Status.Message = reason, message
		return pod
	}
	for what, test := range map[string]struct {
		pod    *corev1.Pod
		code   int32
		reason string
		ok     bool
	}{
		"the program ended": {with(3, "Error", "its last words"), 3, "", true},
		"out of memory":     {with(137, "OOMKilled", ""), 137, "OOMKilled", true},
		"not started": {with(128, "StartError", "exec \"trian\": not found\nat all"), 128,
			"StartError: exec \"trian\": not found", true},
		"the node refused the pod": {refused("OutOfcpu", "Node didn't have enough cpu"), 0,
			"OutOfcpu: Node didn't have enough cpu", false},
		"the node is gone":           {refused("NodeLost", ""), 0, "NodeLost", false},
		"lost, and nobody knows why": {refused("", ""), 137, "ContainerStatusUnknown", true},
	} {
		if code, reason, ok := Failure(test.pod); code != test.code || reason != test.reason || ok != test.ok {
			t.Errorf("%s: Failure = %d, %q, %v, want %d, %q, %v", what, code, reason, ok, test.code, test.reason, test.ok)
		}
	}
}

func TestChanged(t *testing.T) {
	old, sidecarEnded := podOf("p", 0).running(), podOf("p", 0).running()
	sidecarEnded.Status.ContainerStatuses[0].State = podOf("p", 0).ended(0, 0).Status.ContainerStatuses[0].State
	for what, test := range map[string]struct {
		now  podBuilder
		want bool
	}{
		"no change":         {podOf("p", 0).running(), false},
		"end":               {podOf("p", 0).ended(0, 0), true},
		"deletion":          {podOf("p", 0).running().deleted(0), true},
		"another pod":       {func() podBuilder { b := podOf("p", 0).running(); b.UID = "another"; return b }(), true},
		"a container's end": {sidecarEnded, true},
		"another container": {func() podBuilder {
			b := podOf("p", 0).running()
			b.Status.ContainerStatuses[0].Name = "d"
			return b
		}(), true},
		"readiness":  {func() podBuilder { b := podOf("p", 0).running(); b.Status.Conditions = nil; return b }(), true},
		"an address": {func() podBuilder { b := podOf("p", 0).running(); b.Status.PodIP = "10.0.0.1"; return b }(), false},
		"a label": {func() podBuilder { b := podOf("p", 0).running(); b.Labels = map[string]string{"a": "b"}; return b }(),
			false},
	} {
		if got := Changed(old.Pod, test.now.Pod); got != test.want {
			t.Errorf("%s: Changed = %v, want %v", what, got, test.want)
		}
	}
}
