package execnode

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/clientcmd"
)

func TestStopEndsEveryProcess(t *testing.T) {
	onEachKind(t, func(t *testing.T, b *bench) {
		b.pod("runs", `echo ready; setsid sleep 31415 & exec sleep 31415`)
		b.awaitLogLine("runs", "ready")
		began := time.Now()
		b.node.Stop()
		if took := time.Since(began); took > stopGrace+2*time.Minute { // far less than the processes sleep
			t.Errorf("stopping took %v, want less than the sleep of the processes", took)
		}
		if left := processesWith("31415"); left > 0 {
			t.Errorf("%d processes are left, want none", left)
		}
	})
}

// processesWith counts the processes of this machine that have the argument.
func processesWith(argument string) int {
	entries, _ := os.ReadDir("/proc")
	count := 0
	for _, entry := range entries {
		line, err := os.ReadFile("/proc/" + entry.Name() + "/cmdline")
		if err == nil && strings.Contains(string(line), "\x00"+argument+"\x00") {
			count++
		}
	}
	return count
}

func TestNodeContinuesItsPodsAfterAStop(t *testing.T) {
	onEachKind(t, func(t *testing.T, b *bench) {
		always := func(pod *corev1.Pod) { pod.Spec.RestartPolicy = corev1.RestartPolicyAlways }
		b.pod("done", `echo kept; exit 0`)
		b.awaitSuccess("done")
		b.pod("once", `echo ready; exec sleep 1000`)
		b.pod("always", `echo ready; exec sleep 1000`, always)
		b.awaitLogLine("once", "ready")
		b.awaitLogLine("always", "ready")
		b.node.Stop()
		b.start()
		failed := b.awaitEnd("once", corev1.PodFailed)
		if end := failed.Status.ContainerStatuses[0].State.Terminated; end.ExitCode == 0 {
			t.Errorf("end of the container that must not be restarted = %+v, want an error", end)
		}
		b.awaitPod("always", "restarted", func(pod *corev1.Pod) bool {
			return len(pod.Status.ContainerStatuses) == 1 && pod.Status.ContainerStatuses[0].RestartCount == 1 &&
				pod.Status.ContainerStatuses[0].State.Running != nil
		})
		b.awaitLogLine("always", "ready")
		if log := b.log("always", func(o *corev1.PodLogOptions) { o.Previous = true }); log != "ready\n" {
			t.Errorf("log of the run before the stop = %q", log)
		}
		if log := b.log("done"); log != "kept\n" {
			t.Errorf("log of the completed pod = %q", log)
		}
	})
}

// nodeVariable is the environment variable that makes the test binary a node that runs until it is killed.
const nodeVariable = "EXECNODE_TEST_NODE"

// heldNode is the configuration of such a node.
type heldNode struct {
	Name, Dir, Kubeconfig string
	Rootless              bool
}

func TestKillOfTheProcessEndsContainersAndTheNextRunReportsThem(t *testing.T) {
	onEachKind(t, func(t *testing.T, b *bench) {
		b.node.Stop()
		holder := b.hold()
		b.pod("runs", `echo ready; setsid sleep 27182 & exec sleep 27182`)
		b.await("the processes of the pod", func(context.Context) (bool, error) { return processesWith("27182") == 2, nil })
		if err := holder.Process.Signal(syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		holder.Wait()
		b.await("the processes of the pod to be gone",
			func(context.Context) (bool, error) { return processesWith("27182") == 0, nil })
		b.start()
		pod := b.awaitEnd("runs", corev1.PodFailed)
		if end := pod.Status.ContainerStatuses[0].State.Terminated; end.Reason != "NodeStopped" || end.ExitCode != 137 {
			t.Errorf("end of the container = %+v, want NodeStopped with code 137", end)
		}
	})
}

// hold runs the bench's node in another process.
func (b *bench) hold() *exec.Cmd {
	b.Helper()
	kubeconfig := b.config.Dir + ".kubeconfig"
	if err := plane.WriteKubeconfig(kubeconfig, "test", "system:masters"); err != nil {
		b.Fatal(err)
	}
	config, err := json.Marshal(heldNode{Name: b.config.Name, Dir: b.config.Dir, Kubeconfig: kubeconfig,
		Rootless: b.config.hostNetwork})
	if err != nil {
		b.Fatal(err)
	}
	holder := exec.Command(os.Args[0])
	holder.Env = append(os.Environ(), nodeVariable+"="+string(config))
	holder.Stderr = os.Stderr
	out, err := holder.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := holder.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { holder.Process.Kill() })
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "ready\n" {
		b.Fatalf("output of the node's process = %q, %v, want ready", line, err)
	}
	return holder
}

// holdNode is run by the test binary in that process.
func holdNode(text string) error {
	var held heldNode
	if err := json.Unmarshal([]byte(text), &held); err != nil {
		return err
	}
	rest, err := clientcmd.BuildConfigFromFlags("", held.Kubeconfig)
	if err != nil {
		return err
	}
	config := Config{RestConfig: rest, Name: held.Name, Dir: held.Dir, ClusterDomain: "cluster.local",
		Logf: func(string, ...any) {}}
	if held.Rootless {
		rootless(&config)
	}
	if _, err := Start(context.Background(), config); err != nil {
		return err
	}
	fmt.Println("ready")
	select {}
}
