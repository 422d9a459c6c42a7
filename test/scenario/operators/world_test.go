// Package operators tests, on the embedded control plane, operators that are configured otherwise than by default, that
// come late, that go, and that follow each other. Each test runs its own; there are no nodes, and pods are what the
// test says of them.
package operators

import (
	"cmp"
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/testcluster"
	"github.com/musterhq/muster/test/bench/operator"
	"github.com/musterhq/muster/test/scenario/harness"
)

func TestMain(m *testing.M) { testcluster.Main(m, testcluster.Options{}) }

// lasting keeps a pod from going.
const lasting = "example.com/last"

// world is a namespace of a cluster without an operator.
type world struct{ *harness.World }

func newWorld(t *testing.T) *world { return &world{harness.New(t)} }

// operate runs an operator that ends with the test, if nobody ends it before.
func (w *world) operate(flags ...string) *operator.Operator {
	w.Helper()
	return operator.Start(w.T, binary(), w.Cluster, flags...)
}

func binary() string {
	return cmp.Or(os.Getenv(testcluster.OperatorVariable), "../../../bin/muster-operator")
}

// configured is the flag for a configuration with these sections.
func (w *world) configured(sections string) string {
	w.Helper()
	path := filepath.Join(w.TempDir(), "config.yaml")
	text := "apiVersion: config.muster.dev/v1alpha1\nkind: Configuration\n" + sections
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		w.Fatal(err)
	}
	return "--config=" + path
}

// podQueue makes the LocalQueue q, with quota for so many pods.
func (w *world) podQueue(pods int64) {
	w.Helper()
	w.Queue("q", kueue.ResourceFlavorSpec{},
		corev1.ResourceList{corev1.ResourcePods: *resource.NewQuantity(pods, resource.DecimalSI)})
}

// run has the pods of a Job, so many, run and be ready.
func (w *world) run(job string, pods int) []corev1.Pod {
	w.Helper()
	there := w.UntilPodsOf(job, pods)
	for _, pod := range there {
		w.SetPodStatus(pod, corev1.PodRunning, 0)
	}
	return there
}

var is, runs = harness.Is, harness.Runs
