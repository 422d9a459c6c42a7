// Package node tests what requires a real kubelet, containerd and runc: DNS names between pods, claims, exit codes,
// logs, probes, and the agent in a container. Muster itself runs in containers too, as users install it.
package node

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	"github.com/musterhq/muster/internal/testcluster"
	"github.com/musterhq/muster/test/node/machine"
	"github.com/musterhq/muster/test/scenario/harness"
)

func TestMain(m *testing.M) { machine.Main(m, testcluster.Options{NoAPIs: true}) }

// world is a namespace of the cluster with the node.
type world struct{ *harness.World }

// newWorld returns a new namespace for a parallel test.
func newWorld(t *testing.T) *world {
	t.Helper()
	t.Parallel()
	machine.Node(t, images)
	w := &world{harness.New(t)}
	w.printAfterFailure()
	return w
}

// printAfterFailure prints the logs and events of the namespace's pods, and the logs of the node, if the test fails.
func (w *world) printAfterFailure() {
	w.Cleanup(func() {
		if !w.Failed() {
			return
		}
		for _, arguments := range [][]string{
			{"describe", "pods"},
			{"get", "events"},
			{"logs", "-l", "!none", "--all-containers", "--prefix", "--tail=30", "--ignore-errors"},
		} {
			output, _ := machine.Kubectl(context.Background(), w.Cluster, append(arguments, "-n", w.Namespace)...)
			w.Log(output)
		}
		w.Log(machine.Logs())
	})
}

// in returns the world in the namespace of an example, after it has created the prerequisites of the examples.
func (w *world) in(namespace string) *world {
	w.Helper()
	prerequisites.Do(func() {
		if _, err := machine.Kubectl(w.Context(), w.Cluster, "apply", "--server-side", "-f",
			example("prerequisites")); err != nil {
			w.Fatal(err)
		}
	})
	base := *w.World
	base.Namespace = namespace
	other := &world{&base}
	other.printAfterFailure()
	return other
}

var prerequisites sync.Once

// example returns the path of a file or folder under examples/.
func example(path ...string) string {
	return filepath.Join(append([]string{"..", "..", "examples"}, path...)...)
}

// kubectl runs a kubectl command in the world's namespace, and returns its output.
func (w *world) kubectl(arguments ...string) string {
	w.Helper()
	output, err := w.tryKubectl(arguments...)
	if err != nil {
		w.Fatal(err)
	}
	return output
}

func (w *world) tryKubectl(arguments ...string) (output string, err error) {
	return machine.Kubectl(w.Context(), w.Cluster, append([]string{"-n", w.Namespace}, arguments...)...)
}

// apply applies a manifest.
func (w *world) apply(manifest string) {
	w.Helper()
	file := filepath.Join(w.TempDir(), "manifest.yaml")
	if err := os.WriteFile(file, []byte(manifest), 0o600); err != nil {
		w.Fatal(err)
	}
	w.kubectl("apply", "-f", file)
}

// untilPod waits until the condition holds for the pod of this name, and returns it.
func (w *world) untilPod(name, what string, holds func(*corev1.Pod) bool) *corev1.Pod {
	w.Helper()
	return harness.UntilOne(w.World, &corev1.PodList{}, name, what, holds)
}

// logs returns a container's log, as `kubectl logs` does.
func (w *world) logs(pod, container string) string {
	w.Helper()
	log, err := w.tryLogs(pod, container)
	if err != nil {
		w.Fatalf("reading the logs of %s: %v", pod, err)
	}
	return log
}

func (w *world) tryLogs(pod, container string) (string, error) {
	clients, err := kubernetes.NewForConfig(w.Cluster.Config)
	if err != nil {
		return "", err
	}
	log, err := clients.CoreV1().Pods(w.Namespace).GetLogs(pod,
		&corev1.PodLogOptions{Container: container}).DoRaw(w.Context())
	return string(log), err
}

// untilLogHas polls a container's log until it has the texts, in this order.
func (w *world) untilLogHas(pod, container string, texts ...string) {
	w.Helper()
	var log string
	err := wait.PollUntilContextTimeout(w.Context(), 300*time.Millisecond, harness.Patience,
		true, func(context.Context) (bool, error) {
			log, _ = w.tryLogs(pod, container) // fails while the container has not started
			rest, found := log, true
			for _, text := range texts {
				if _, rest, found = strings.Cut(rest, text); !found {
					return false, nil
				}
			}
			return true, nil
		})
	if err != nil {
		w.Fatalf("timed out after %s waiting until the log of %s has %q in this order; it is:\n%s",
			harness.Patience, pod, texts, log)
	}
}
