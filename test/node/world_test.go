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

// printAfterFailure prints, if the test fails, the logs and events of its pods.
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
			said, _ := machine.Kubectl(context.Background(), w.Cluster, append(arguments, "-n", w.Namespace)...)
			w.Log(said)
		}
		w.Log(machine.Logs())
	})
}

// in returns the world in the namespace of an example, in which everything that the examples need has been created.
func (w *world) in(namespace string) *world {
	w.Helper()
	prerequisites.Do(func() {
		if _, err := machine.Kubectl(w.Context(), w.Cluster, "apply", "--server-side", "-f", example("prerequisites")); err != nil {
			w.Fatal(err)
		}
	})
	other := *w.World
	other.Namespace = namespace
	there := &world{&other}
	there.printAfterFailure()
	return there
}

var prerequisites sync.Once

func example(path ...string) string {
	return filepath.Join(append([]string{"..", "..", "examples"}, path...)...)
}

// kubectl runs a kubectl command in the world's namespace.
func (w *world) kubectl(arguments ...string) (said string) {
	w.Helper()
	said, err := w.tryKubectl(arguments...)
	if err != nil {
		w.Fatal(err)
	}
	return said
}

func (w *world) tryKubectl(arguments ...string) (said string, err error) {
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
	said, err := w.tryLogs(pod, container)
	if err != nil {
		w.Fatalf("reading the logs of %s: %v", pod, err)
	}
	return said
}

func (w *world) tryLogs(pod, container string) (string, error) {
	clients, err := kubernetes.NewForConfig(w.Cluster.Config)
	if err != nil {
		return "", err
	}
	said, err := clients.CoreV1().Pods(w.Namespace).GetLogs(pod, &corev1.PodLogOptions{Container: container}).DoRaw(w.Context())
	return string(said), err
}

// untilSays polls a container's log until it has the texts, in this order.
func (w *world) untilSays(pod, container string, texts ...string) {
	w.Helper()
	var said string
	err := wait.PollUntilContextTimeout(w.Context(), 300*time.Millisecond, harness.Patience, true, func(context.Context) (bool, error) {
		said, _ = w.tryLogs(pod, container) // it may not have started yet
		rest, found := said, true
		for _, text := range texts {
			if _, rest, found = strings.Cut(rest, text); !found {
				return false, nil
			}
		}
		return true, nil
	})
	if err != nil {
		w.Fatalf("%s did not say %q; it said:\n%s", pod, texts, said)
	}
}
