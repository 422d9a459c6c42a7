package execnode

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/remotecommand"
	utilexec "k8s.io/client-go/util/exec"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
	"k8s.io/utils/ptr"
)

func TestPodRunsAndEnds(t *testing.T) {
	onEachKind(t, func(t *testing.T, b *bench) {
		started := time.Now()
		b.pod("hello", `echo hello from $(hostname) in $PWD; echo $HOME $LANG; exit 0`)
		pod := b.awaitSuccess("hello")
		t.Logf("the pod ended after %v", time.Since(started))
		if log := b.log("hello"); !strings.Contains(log, "hello from hello in "+b.node.podDir(pod.UID)+"/work") {
			t.Errorf("log = %q", log)
		}
		if state := pod.Status.ContainerStatuses[0].State.Terminated; state.Reason != "Completed" ||
			!strings.HasPrefix(state.ContainerID, "process://") {
			t.Errorf("end of the container = %+v, want Completed", state)
		}
		if _, ready := podutil.GetPodCondition(&pod.Status, corev1.PodReady); ready.Status != corev1.ConditionFalse ||
			ready.Reason != "PodCompleted" {
			t.Errorf("condition Ready = %+v, want False with PodCompleted", ready)
		}
		b.pod("fails", `exit 3`)
		if state := b.awaitEnd("fails", corev1.PodFailed).Status.ContainerStatuses[0].State.Terminated; state.ExitCode != 3 ||
			state.Reason != "Error" {
			t.Errorf("end of the container = %+v, want Error with code 3", state)
		}
	})
}

func TestNodeIsRegisteredWithThisMachine(t *testing.T) {
	b := newBench(t, plain)
	node, err := b.client.CoreV1().Nodes().Get(t.Context(), b.config.Name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if cpu := node.Status.Allocatable.Cpu().Value(); cpu < 1 {
		t.Errorf("node has %d CPUs, want at least 1", cpu)
	}
	for _, label := range []string{corev1.LabelHostname, corev1.LabelOSStable, corev1.LabelArchStable} {
		if node.Labels[label] == "" {
			t.Errorf("node does not have the label %s", label)
		}
	}
	if len(node.Spec.Taints) > 0 {
		t.Errorf("taints of the node = %v, want none", node.Spec.Taints)
	}
}

func TestInitContainersRunInOrderBeforeTheOthers(t *testing.T) {
	onEachKind(t, func(t *testing.T, b *bench) {
		b.pod("ordered", `cat /shared/order; cat /shared/sidecar; exit 0`, func(pod *corev1.Pod) {
			shared := []corev1.VolumeMount{{Name: "shared", MountPath: "/shared"}}
			container := func(name, script string) corev1.Container {
				return corev1.Container{Name: name, Image: "none", Command: []string{"sh", "-c", script}, VolumeMounts: shared}
			}
			sidecar := container("sidecar", `echo beside > /shared/sidecar; exec sleep 1000`)
			sidecar.RestartPolicy = ptr.To(corev1.ContainerRestartPolicyAlways)
			sidecar.StartupProbe = execProbe("test -s /shared/sidecar")
			pod.Spec.InitContainers = []corev1.Container{
				container("first", `echo one >> /shared/order`), sidecar, container("second", `echo two >> /shared/order`),
			}
			pod.Spec.Containers[0].VolumeMounts = shared
			pod.Spec.Volumes = []corev1.Volume{{Name: "shared",
				VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
		})
		b.awaitSuccess("ordered")
		if log := b.log("ordered"); log != "one\ntwo\nbeside\n" {
			t.Errorf("log = %q", log)
		}
	})
}

func execProbe(script string) *corev1.Probe {
	return &corev1.Probe{
		ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"sh", "-c", script}}},
		// a busy machine may take more than a second to start a command
		PeriodSeconds: 1, FailureThreshold: 30, TimeoutSeconds: 30,
	}
}

func TestFailedContainerIsRestartedWithBackOff(t *testing.T) {
	b := newBench(t, plain)
	b.pod("crash", `echo "attempt at $(date +%s%N)"; exit 1`,
		func(pod *corev1.Pod) { pod.Spec.RestartPolicy = corev1.RestartPolicyAlways })
	pod := b.awaitPod("crash", "in back-off", func(pod *corev1.Pod) bool {
		return len(pod.Status.ContainerStatuses) == 1 && pod.Status.ContainerStatuses[0].State.Waiting != nil &&
			pod.Status.ContainerStatuses[0].State.Waiting.Reason == "CrashLoopBackOff"
	})
	container := pod.Status.ContainerStatuses[0]
	if pod.Status.Phase != corev1.PodRunning || container.RestartCount < 1 ||
		container.LastTerminationState.Terminated == nil {
		t.Errorf("pod is %s with container status %+v, want it running after a restart", pod.Status.Phase, container)
	}
	b.awaitEvent("crash", "BackOff", "Back-off restarting failed container main")
	previous := b.log("crash", func(o *corev1.PodLogOptions) { o.Previous = true })
	if !strings.HasPrefix(previous, "attempt at ") {
		t.Errorf("previous log = %q", previous)
	}
}

func TestDeletedPodIsKilledAfterItsGracePeriod(t *testing.T) {
	onEachKind(t, func(t *testing.T, b *bench) {
		b.pod("polite", `trap "echo bye; exit 0" TERM; echo ready; while :; do sleep 0.05; done`)
		b.awaitLogLine("polite", "ready")
		b.delete("polite", nil)
		b.awaitGone("polite")

		b.pod("stubborn", `trap "" TERM; echo ready; while :; do sleep 0.05; done`, func(pod *corev1.Pod) {
			pod.Spec.TerminationGracePeriodSeconds = ptr.To[int64](600) // far longer than the test waits
		})
		b.awaitLogLine("stubborn", "ready")
		began := time.Now()
		b.delete("stubborn", ptr.To[int64](2))
		b.awaitGone("stubborn")
		if took := time.Since(began); took < 2*time.Second {
			t.Errorf("a pod that ignores SIGTERM, deleted with 2s of grace, was gone after %v", took)
		}
	})
}

func TestPodWithoutCommandIsRefused(t *testing.T) {
	b := newBench(t, plain)
	withoutCommand := func(pod *corev1.Pod) {
		pod.Spec.Containers[0].Command = nil
		pod.Spec.Containers[0].Image = "nginx:1"
	}
	b.pod("once", "", withoutCommand)
	pod := b.awaitEnd("once", corev1.PodFailed)
	const want = `container "main" has no command`
	if pod.Status.Reason != reasonNoCommand || !strings.Contains(pod.Status.Message, want) {
		t.Errorf("status = %s %q", pod.Status.Reason, pod.Status.Message)
	}
	if _, ready := podutil.GetPodCondition(&pod.Status, corev1.PodReady); ready.Reason != reasonNoCommand ||
		!strings.Contains(ready.Message, want) {
		t.Errorf("condition Ready = %+v", ready)
	}
	b.awaitEvent("once", reasonNoCommand, want)

	b.pod("always", "", withoutCommand, func(pod *corev1.Pod) { pod.Spec.RestartPolicy = corev1.RestartPolicyAlways })
	waiting := b.awaitPod("always", "refused", func(pod *corev1.Pod) bool { return pod.Status.Reason == reasonNoCommand })
	if waiting.Status.Phase != corev1.PodPending ||
		waiting.Status.ContainerStatuses[0].State.Waiting.Reason != reasonNoCommand {
		t.Errorf("status = %+v, want it pending", waiting.Status)
	}
	b.delete("always", nil)
	b.awaitGone("always")
}

func TestProbesDecideReadinessAndRestart(t *testing.T) {
	onEachKind(t, func(t *testing.T, b *bench) {
		b.pod("probed", `trap 'exit 0' TERM; while :; do sleep 0.05; done`, func(pod *corev1.Pod) {
			pod.Spec.RestartPolicy = corev1.RestartPolicyAlways
			pod.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "state", MountPath: "/state"}}
			pod.Spec.Containers[0].ReadinessProbe = execProbe("test -e /state/ready")
			alive := execProbe("test ! -e /state/dead")
			alive.FailureThreshold = 1
			pod.Spec.Containers[0].LivenessProbe = alive
			pod.Spec.Volumes = []corev1.Volume{{Name: "state",
				VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
		})
		ready := func(want bool) func(*corev1.Pod) bool {
			return func(pod *corev1.Pod) bool {
				return pod.Status.Phase == corev1.PodRunning && podutil.IsPodReady(pod) == want
			}
		}
		pod := b.awaitPod("probed", "running and not ready", ready(false))
		state := filepath.Join(b.node.podDir(pod.UID), "volumes/kubernetes.io~empty-dir/state")
		write := func(name string) {
			if err := os.WriteFile(filepath.Join(state, name), nil, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		write("ready")
		b.awaitPod("probed", "ready", ready(true))
		write("dead")
		b.awaitPod("probed", "restarted",
			func(pod *corev1.Pod) bool { return pod.Status.ContainerStatuses[0].RestartCount > 0 })
		b.awaitEvent("probed", "Unhealthy", "Liveness probe failed")
	})
}

func TestLogsFollowUntilTheEnd(t *testing.T) {
	b := newBench(t, plain)
	b.pod("talks", `for i in 1 2 3 4 5; do echo line $i; sleep 0.2; done`)
	b.awaitLogLine("talks", "line 1")
	stream, err := b.client.CoreV1().Pods(b.namespace).GetLogs("talks",
		&corev1.PodLogOptions{Follow: true}).Stream(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(stream)
	if err != nil || string(text) != "line 1\nline 2\nline 3\nline 4\nline 5\n" {
		t.Errorf("followed log = %q, %v", text, err)
	}
	if tail := b.log("talks",
		func(o *corev1.PodLogOptions) { o.TailLines = ptr.To[int64](2) }); tail != "line 4\nline 5\n" {
		t.Errorf("tail = %q", tail)
	}
}

func TestEnvironmentAndTerminationMessage(t *testing.T) {
	onEachKind(t, func(t *testing.T, b *bench) {
		t.Setenv("EXECNODE_TEST_SECRET", "must not leak")
		settings := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "settings"}, Data: map[string]string{"RATE": "0.1"}}
		if _, err := b.client.CoreV1().ConfigMaps(b.namespace).Create(t.Context(), settings,
			metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		b.pod("env", `env; cat /etc/settings/RATE; test -s /var/run/secrets/kubernetes.io/serviceaccount/token && echo has-token; echo done with it > /dev/termination-log`, func(pod *corev1.Pod) {
			container := &pod.Spec.Containers[0]
			container.EnvFrom = []corev1.EnvFromSource{
				{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "settings"}}}}
			container.Env = []corev1.EnvVar{
				{Name: "MY_IP", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "status.podIP"}}},
				{Name: "MY_NAME",
					ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}}},
				{Name: "GREETING", Value: "hello $(MY_NAME)"},
			}
			container.VolumeMounts = []corev1.VolumeMount{{Name: "settings", MountPath: "/etc/settings"}}
			pod.Spec.Volumes = []corev1.Volume{{Name: "settings",
				VolumeSource: corev1.VolumeSource{
					ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "settings"}}}}}
		})
		pod := b.awaitSuccess("env")
		log := b.log("env")
		for _, line := range []string{"RATE=0.1\n", "MY_IP=" + pod.Status.PodIP + "\n", "GREETING=hello env\n",
			"KUBERNETES_SERVICE_HOST=", "PATH=" + os.Getenv("PATH") + "\n", "\n0.1has-token\n"} {
			if !strings.Contains(log, line) {
				t.Errorf("log does not have %q", line)
			}
		}
		if strings.Contains(log, "must not leak") {
			t.Error("the container has the machine's environment")
		}
		if t.Failed() {
			t.Log(log)
		}
		if message := pod.Status.ContainerStatuses[0].State.Terminated.Message; message != "done with it\n" {
			t.Errorf("termination message = %q", message)
		}
	})
}

func TestHooksRunAndTheDeadlineEndsAPod(t *testing.T) {
	b := newBench(t, rootless)
	b.pod("hooked", `while :; do sleep 0.05; done`, func(pod *corev1.Pod) {
		run := func(script string) *corev1.LifecycleHandler {
			return &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{"sh", "-c", script}}}
		}
		pod.Spec.ActiveDeadlineSeconds = ptr.To[int64](2)
		pod.Spec.Volumes = []corev1.Volume{{Name: "hooks",
			VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
		pod.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "hooks", MountPath: "/hooks"}}
		pod.Spec.Containers[0].Lifecycle = &corev1.Lifecycle{PostStart: run("echo started >> /hooks/it"),
			PreStop: run("echo stopping >> /hooks/it")}
	})
	pod := b.awaitEnd("hooked", corev1.PodFailed)
	if pod.Status.Reason != "DeadlineExceeded" {
		t.Errorf("reason of the pod = %q, want DeadlineExceeded", pod.Status.Reason)
	}
	hooks, err := os.ReadFile(filepath.Join(b.node.podDir(pod.UID), "volumes/kubernetes.io~empty-dir/hooks/it"))
	if err != nil || string(hooks) != "started\nstopping\n" {
		t.Errorf("output of the hooks = %q, %v", hooks, err)
	}
}

func TestPodWithoutMountsIsRefusedVolumesAndStillRuns(t *testing.T) {
	b := newBench(t, plain)
	if len(*b.lines) < 1 {
		t.Error("the node logged nothing at its start, want the missing mounts")
	}
	b.pod("volume", `true`, func(pod *corev1.Pod) {
		pod.Spec.Volumes = []corev1.Volume{{Name: "data",
			VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
		pod.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "data", MountPath: "/data"}}
	})
	if pod := b.awaitEnd("volume", corev1.PodFailed); pod.Status.Reason != reasonNoMounts {
		t.Errorf("pod ended with reason %s: %s", pod.Status.Reason, pod.Status.Message)
	}
	b.pod("bare", `echo fine`)
	b.awaitSuccess("bare")
}

func TestMissingConfigMapIsNamedAndAwaited(t *testing.T) {
	b := newBench(t, rootless)
	b.pod("early", `cat /etc/late/key`, func(pod *corev1.Pod) {
		late := corev1.LocalObjectReference{Name: "late"}
		pod.Spec.Volumes = []corev1.Volume{{Name: "late",
			VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: late}}}}
		pod.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "late", MountPath: "/etc/late"}}
	})
	b.awaitEvent("early", "FailedMount", `configmap "late" not found`)
	late := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "late"}, Data: map[string]string{"key": "here at last"}}
	if _, err := b.client.CoreV1().ConfigMaps(b.namespace).Create(t.Context(), late, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	b.awaitSuccess("early")
	if log := b.log("early"); log != "here at last\n" {
		t.Errorf("log = %q", log)
	}
}

// TestNothingIsWrittenInSteadyState watches the objects that the node could write: its Node, its pods and their events.
func TestNothingIsWrittenInSteadyState(t *testing.T) {
	b := newBench(t, rootless)
	b.pod("steady", `exec sleep 1000`, func(pod *corev1.Pod) {
		pod.Spec.Containers[0].ReadinessProbe = execProbe("true")
	})
	b.awaitPod("steady", "ready", podutil.IsPodReady)
	b.awaitEvent("steady", "Started", "")
	versions := func() string {
		pod, err := b.client.CoreV1().Pods(b.namespace).Get(t.Context(), "steady", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		node, err := b.client.CoreV1().Nodes().Get(t.Context(), b.config.Name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return pod.ResourceVersion + " " + node.ResourceVersion + " " + b.events("steady")
	}
	// This is more than the status manager's period of ten seconds, after which it compares its state with the API
	// server.
	before := versions()
	select {
	case <-time.After(12 * time.Second):
	case <-t.Context().Done():
	}
	if after := versions(); after != before {
		t.Errorf("versions and events changed from %q to %q", before, after)
	}
}

func TestCommandsRunInContainersThroughTheAPIServer(t *testing.T) {
	onEachKind(t, func(t *testing.T, b *bench) {
		b.pod("open", `exec sleep 1000`)
		b.awaitPod("open", "running", phaseIs(corev1.PodRunning))
		request := b.client.CoreV1().RESTClient().Post().Namespace(b.namespace).Resource("pods").Name("open").
			SubResource("exec").
			VersionedParams(&corev1.PodExecOptions{Command: []string{"sh", "-c", "cat; hostname; exit 3"}, Stdin: true,
				Stdout: true}, scheme.ParameterCodec)
		executor, err := remotecommand.NewSPDYExecutor(plane.Admin(), "POST", request.URL())
		if err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		err = executor.StreamWithContext(t.Context(),
			remotecommand.StreamOptions{Stdin: strings.NewReader("from outside\n"), Stdout: &out})
		var exit utilexec.CodeExitError
		if !errors.As(err, &exit) || exit.Code != 3 || out.String() != "from outside\nopen\n" {
			t.Errorf("exec = %q, %v", out.String(), err)
		}
	})
}
