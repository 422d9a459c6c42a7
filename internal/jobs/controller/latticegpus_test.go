package controller_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	lattice "github.com/musterhq/muster/api/lattice/v1alpha1"
	volcano "github.com/musterhq/muster/api/volcano/batch/v1alpha1"
	"github.com/musterhq/muster/internal/jobs/latticejob/compile"
)

// nodeWith returns a node that offers the resource.
func nodeWith(name corev1.ResourceName) *corev1.Node {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}
	node.Status.Allocatable = corev1.ResourceList{name: resource.MustParse("8")}
	return node
}

// askGPUs returns a change by which the task asks for GPUs.
func askGPUs(params string) func(*lattice.JobTaskSpec) {
	return func(task *lattice.JobTaskSpec) {
		task.Workload.Resources["g"] = lattice.ResourceSpec{Type: lattice.GPUResource,
			Params: &runtime.RawExtension{Raw: []byte(params)}}
	}
}

// queueWithGPUs returns a world whose LatticeJob waits in a queue of Muster's, while a node offers the resource.
func queueWithGPUs(t *testing.T, offered corev1.ResourceName, params string) *latticeWorld {
	t.Helper()
	return queueForVolcano(t, func(w *latticeWorld) {
		w.put(nodeWith(offered))
		changeTask(askGPUs(params))(w)
	})
}

// Queue reports whether the pods of the template request the resource.
func Queue(template *corev1.PodTemplateSpec, name corev1.ResourceName) bool {
	_, asked := template.Spec.Containers[0].Resources.Limits[name]
	return asked
}

// checkQueued checks that the job waits for quota of the resource.
func (l *latticeWorld) checkQueued(name corev1.ResourceName) {
	l.t.Helper()
	status, wl := l.latticeJob().Status, l.workload()
	if status.Phase != lattice.Pending || !strings.HasPrefix(status.Message, "Waiting for quota") || wl == nil ||
		!Queue(&wl.Spec.PodSets[0].Template, name) {
		l.t.Errorf("the LatticeJob is %s (%s), with the Workload %+v; want it waiting for quota of %s", status.Phase,
			status.Message, wl, name)
	}
}

func (l *latticeWorld) deleteNode() {
	l.t.Helper()
	if err := l.api.Delete(l.t.Context(), nodeWith(compile.VGPUNumber)); err != nil {
		l.t.Fatal(err)
	}
}

// TestWaitingJobDoesNotReturnToWholeGPUs when no node shares its GPUs just now, whether it was evicted or never ran:
// nodes and device plugins come and go. It runs with what it queued for.
func TestWaitingJobDoesNotReturnToWholeGPUs(t *testing.T) {
	for name, params := range map[string]string{"whole GPUs would do": `{"count": 1}`,
		"whole GPUs would not do": `{"count": 1, "compute": 50}`} {
		for when, evicted := range map[string]bool{"never ran": false, "was evicted": true} {
			t.Run(name+", "+when, func(t *testing.T) {
				w := queueWithGPUs(t, compile.VGPUNumber, params)
				if evicted {
					w.admit()
					w.settle()
					setVCJobPhase(volcano.Running, "")(w)
					w.settle()
					w.evict()
				}
				w.deleteNode()
				w.settle()
				if status := w.latticeJob().Status; status.Phase != lattice.Pending {
					t.Fatalf("the LatticeJob is %s: %s", status.Phase, status.Message)
				}
				w.admit()
				w.settle()
				if all := list[volcano.JobList](w.world).Items; len(all) != 1 ||
					!Queue(&all[0].Spec.Tasks[0].Template, compile.VGPUNumber) {
					t.Errorf("VCJobs = %+v, want one that requests %s", all, compile.VGPUNumber)
				}
			})
		}
	}
}

// TestWaitingJobFollowsNodesThatShareTheirGPUs, which no event reports.
func TestWaitingJobFollowsNodesThatShareTheirGPUs(t *testing.T) {
	w := queueWithGPUs(t, compile.WholeGPU, `{"count": 1}`)
	w.checkQueued(compile.WholeGPU)
	if again := w.reconcile().RequeueAfter; again == 0 || again > time.Minute {
		t.Errorf("it is reconciled again after %v, want within a minute", again)
	}
	w.deleteNode()
	w.put(nodeWith(compile.VGPUNumber))
	w.settle()
	w.checkQueued(compile.VGPUNumber)
}

// TestJobWaitsForNodesThatShareTheirGPUs if it was changed to need them while it waited: it gives its place in the
// queue up, and queues again once there are any.
func TestJobWaitsForNodesThatShareTheirGPUs(t *testing.T) {
	w := queueWithGPUs(t, compile.WholeGPU, `{"count": 1}`)
	changeTask(askGPUs(`{"count": 1, "compute": 50}`))(w)
	w.settle()
	if status := w.latticeJob().Status; status.Phase != lattice.Pending ||
		!strings.Contains(status.Message, "no node shares its GPUs") || w.workload() != nil {
		t.Errorf("the LatticeJob is %s (%s), with the Workload %v; want it Pending for nodes that share their GPUs, without one",
			status.Phase, status.Message, w.workload())
	}
	if again := w.reconcile().RequeueAfter; again == 0 || again > time.Minute {
		t.Errorf("it is reconciled again after %v, want within a minute", again)
	}
	w.deleteNode()
	w.put(nodeWith(compile.VGPUNumber))
	w.settle()
	w.checkQueued(compile.VGPUNumber)
}
