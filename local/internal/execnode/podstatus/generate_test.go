package podstatus

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
	"k8s.io/utils/ptr"
)

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// scene builds what was observed of a pod whose main container is called main.
type scene struct{ Seen }

func a(policy corev1.RestartPolicy) *scene {
	return &scene{Seen{
		Pod: &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "n", UID: "u"},
			Spec:       corev1.PodSpec{RestartPolicy: policy, Containers: []corev1.Container{{Name: "main"}}},
		},
		Runtime: &kubecontainer.PodStatus{IPs: []string{"10.64.0.2"}},
		Waiting: func(string) (string, string, bool) { return "", "", false },
		HostIP:  "192.0.2.1",
	}}
}

func (s *scene) init(name string) *scene {
	s.Pod.Spec.InitContainers = append(s.Pod.Spec.InitContainers, corev1.Container{Name: name})
	return s
}

func (s *scene) sidecar(name string) *scene {
	s.Pod.Spec.InitContainers = append(s.Pod.Spec.InitContainers,
		corev1.Container{Name: name, RestartPolicy: ptr.To(corev1.ContainerRestartPolicyAlways)})
	return s
}

// run adds a run of a container; later runs are newer.
func (s *scene) run(name string, state kubecontainer.State, code int) *scene {
	attempt := 0
	for _, other := range s.Runtime.ContainerStatuses {
		if other.Name == name {
			attempt++
		}
	}
	reason := ""
	if state == kubecontainer.ContainerStateExited {
		reason = map[bool]string{true: "Completed", false: "Error"}[code == 0]
	}
	status := &kubecontainer.Status{
		ID: kubecontainer.ContainerID{Type: "process", ID: name + string(rune('0'+attempt))}, Name: name,
		State: state, ExitCode: code,
		Reason: reason, RestartCount: attempt, CreatedAt: start.Add(time.Duration(attempt) * time.Minute), StartedAt: start,
		FinishedAt: start,
	}
	s.Runtime.ContainerStatuses = append(s.Runtime.ContainerStatuses, status)
	s.Runtime.ActiveContainerStatuses = append(s.Runtime.ActiveContainerStatuses, status)
	return s
}

func (s *scene) runs(name string) *scene { return s.run(name, kubecontainer.ContainerStateRunning, 0) }

func (s *scene) exited(name string, code int) *scene {
	return s.run(name, kubecontainer.ContainerStateExited, code)
}

func (s *scene) started(name string) *scene {
	s.Probed = func(status *corev1.PodStatus) {
		for _, list := range [][]corev1.ContainerStatus{status.ContainerStatuses, status.InitContainerStatuses} {
			for i := range list {
				if list[i].State.Running != nil {
					list[i].Started, list[i].Ready = ptr.To(true), true
				}
			}
		}
	}
	return s
}

func (s *scene) waits(name, reason string) *scene {
	s.Waiting = func(container string) (string, string, bool) { return reason, "because", container == name }
	return s
}

func (s *scene) over() *scene { s.Over = true; return s }

func (s *scene) was(phase corev1.PodPhase) *scene {
	s.Previous.Phase, s.Pod.Status.Phase = phase, phase
	return s
}

func TestPhaseFollowsFromContainers(t *testing.T) {
	never, onFailure, always := corev1.RestartPolicyNever, corev1.RestartPolicyOnFailure, corev1.RestartPolicyAlways
	for name, test := range map[string]struct {
		scene *scene
		want  corev1.PodPhase
	}{
		"no container has run":          {a(never), corev1.PodPending},
		"the container runs":            {a(never).runs("main"), corev1.PodRunning},
		"the container succeeded":       {a(never).exited("main", 0), corev1.PodSucceeded},
		"the container failed for good": {a(never).exited("main", 1), corev1.PodFailed},
		"the container failed and will restart": {a(onFailure).exited("main", 1),
			corev1.PodRunning},
		"the container succeeded and is not restarted": {a(onFailure).exited("main", 0),
			corev1.PodSucceeded},
		"the container succeeded and is restarted": {a(always).exited("main", 0), corev1.PodRunning},
		"the container waits in back-off": {a(always).exited("main", 1).waits("main",
			"CrashLoopBackOff"), corev1.PodRunning},
		"the container could not be created": {a(always).waits("main",
			"CreateContainerConfigError"), corev1.PodPending},
		"a deleted pod's containers were stopped": {a(always).exited("main", 143).over(),
			corev1.PodFailed},
		"a deleted pod's containers succeeded": {a(always).exited("main", 0).over(),
			corev1.PodSucceeded},
		"an init container runs": {a(never).init("first").runs("first"),
			corev1.PodPending},
		"an init container failed for good": {a(never).init("first").exited("first", 1),
			corev1.PodFailed},
		"an init container failed and will restart": {a(onFailure).init("first").exited("first", 1),
			corev1.PodPending},
		"init containers are done and the container runs": {a(never).init("first").exited("first",
			0).runs("main"), corev1.PodRunning},
		"the init container is not known any more and the container runs": {a(never).init("first").runs("main"),
			corev1.PodRunning},
		"a sidecar has not started": {a(never).sidecar("proxy").runs("proxy"), corev1.PodPending},
		"a sidecar and the container run": {a(never).sidecar("proxy").runs("proxy").runs("main").started(
			"proxy"), corev1.PodRunning},
		"the container is done and a sidecar still up": {a(never).sidecar("proxy").exited("main", 0).runs("proxy").started(
			"proxy"), corev1.PodRunning},
		"the container is done and a sidecar went down": {a(never).sidecar("proxy").exited("main", 0).exited("proxy", 137),
			corev1.PodSucceeded},
		"a pod that has failed stays failed": {a(never).was(corev1.PodFailed).runs("main"), corev1.PodFailed},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Generate(test.scene.Seen).Phase; got != test.want {
				t.Errorf("phase = %s, want %s", got, test.want)
			}
		})
	}
}

func TestRestartKeepsTheLastEndAndCounts(t *testing.T) {
	got := Generate(a(corev1.RestartPolicyAlways).exited("main", 3).runs("main").Seen).ContainerStatuses[0]
	if got.RestartCount != 1 || got.State.Running == nil || got.LastTerminationState.Terminated == nil ||
		got.LastTerminationState.Terminated.ExitCode != 3 {
		t.Errorf("container status = %+v, want it running after one restart", got)
	}
	backOff := Generate(a(corev1.RestartPolicyAlways).exited("main", 3).waits("main",
		"CrashLoopBackOff").Seen).ContainerStatuses[0]
	if backOff.State.Waiting == nil || backOff.State.Waiting.Reason != "CrashLoopBackOff" ||
		backOff.LastTerminationState.Terminated.ExitCode != 3 {
		t.Errorf("container status in back-off = %+v", backOff)
	}
}

func TestContainerThatVanishedWhileRunningHasEnded(t *testing.T) {
	seen := a(corev1.RestartPolicyAlways)
	seen.Previous = Generate(a(corev1.RestartPolicyAlways).runs("main").Seen)
	got := Generate(seen.Seen)
	last := got.ContainerStatuses[0].LastTerminationState.Terminated
	if last == nil || last.ExitCode != 137 || last.Reason != "ContainerStatusUnknown" ||
		got.ContainerStatuses[0].RestartCount != 1 {
		t.Errorf("container status = %+v, want ContainerStatusUnknown with one restart", got.ContainerStatuses[0])
	}
}

func TestFailureEndsThePodAndKeepsItsAddress(t *testing.T) {
	seen := a(corev1.RestartPolicyAlways).runs("main")
	seen.Previous = Generate(seen.Seen)
	seen.Runtime.IPs = nil
	seen.Failure = &Failure{Reason: "DeadlineExceeded", Message: "too long"}
	got := Generate(seen.Seen)
	if got.Phase != corev1.PodFailed || got.Reason != "DeadlineExceeded" || got.Message != "too long" ||
		got.PodIP != "10.64.0.2" {
		t.Errorf("status = %s %s %q at %s", got.Phase, got.Reason, got.Message, got.PodIP)
	}
}

func TestConditionsFollowReadinessAndKeepOthers(t *testing.T) {
	seen := a(corev1.RestartPolicyAlways).runs("main").started("main")
	seen.Pod.Status.Conditions = []corev1.PodCondition{{Type: "example.com/gate", Status: corev1.ConditionTrue}}
	got := Generate(seen.Seen)
	for _, kind := range []corev1.PodConditionType{corev1.PodReady, corev1.ContainersReady, corev1.PodInitialized,
		corev1.PodScheduled, "example.com/gate"} {
		if _, condition := podutil.GetPodCondition(&got, kind); condition == nil || condition.Status != corev1.ConditionTrue {
			t.Errorf("condition %s = %+v, want True", kind, condition)
		}
	}
	done := Generate(a(corev1.RestartPolicyNever).exited("main", 0).Seen)
	if _, ready := podutil.GetPodCondition(&done, corev1.PodReady); ready.Status != corev1.ConditionFalse ||
		ready.Reason != "PodCompleted" {
		t.Errorf("condition Ready of a completed pod = %+v", ready)
	}
}
