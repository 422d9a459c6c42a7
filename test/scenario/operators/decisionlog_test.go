package operators

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/engine/record"
)

// TestTheLogOfAnOperatorReplays: admission, preemption and an end that gives quota back, with an operator that is
// killed and started again on the way, are decided again from the log alone.
func TestTheLogOfAnOperatorReplays(t *testing.T) {
	w := newWorld(t)
	log := filepath.Join(t.TempDir(), "decisions.log")
	first := w.operate("--decision-log=" + log)
	w.Queue("q", kueue.ResourceFlavorSpec{}, corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")},
		func(q *kueue.ClusterQueueSpec) {
			q.Preemption = &kueue.ClusterQueuePreemption{WithinClusterQueue: kueue.PreemptionPolicyLowerPriority}
		})
	w.Create(w.wholeQueue("low", 0))
	w.UntilWorkload("low", "runs", runs)
	high := w.wholeQueue("high", 9)
	w.Create(high)
	w.UntilWorkload("high", "runs", runs) // low was preempted for it

	first.End(syscall.SIGKILL)
	second := w.operate("--decision-log=" + log)
	w.Delete(high)
	w.UntilWorkload("low", "runs again", runs)
	second.End(syscall.SIGTERM)

	file, err := os.Open(log)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	got, err := record.Replay(file)
	if err != nil || got.Difference != nil {
		t.Fatalf("the replay gives %+v with the difference %+v, %v", got, got.Difference, err)
	}
	if got.Runs != 2 || got.Decisions < 4 {
		t.Errorf("%d runs and %d decisions were replayed, want 2 and 4 at least", got.Runs, got.Decisions)
	}
}

// wholeQueue needs all 2 CPUs that there are.
func (w *world) wholeQueue(name string, priority int32) *kueue.Workload {
	o := w.Workload(name, "q")
	o.Spec.Priority = ptr.To(priority)
	o.Spec.PodSets[0].Template.Spec.Containers[0].Resources.Requests =
		corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")}
	return o
}
