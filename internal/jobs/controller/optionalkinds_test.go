package controller_test

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	lattice "github.com/musterhq/muster/api/lattice/v1alpha1"
	"github.com/musterhq/muster/internal/jobs/controller"
	"github.com/musterhq/muster/internal/jobs/latticejob"
)

// newExternalWorld returns a latticeWorld whose VCJobs Volcano runs, with the ClusterQueue cq.
func newExternalWorld(t *testing.T) *latticeWorld {
	w := newLatticeWorld(t, fault{}, nil)
	if err := w.api.Create(t.Context(), clusterQueue("cq")); err != nil {
		t.Fatal(err)
	}
	w.restart()
	return w
}

// restart starts a new operator, which does not know yet whether the cluster serves Volcano's kinds.
func (l *latticeWorld) restart() {
	l.reconciler = controller.NewReconciler(latticejob.New(latticejob.Settings{External: true}), l.recordingClient(),
		l.events, l.clock)
}

// setVolcanoServed tells the operator whether the cluster serves Volcano's kinds.
func (l *latticeWorld) setVolcanoServed(served bool) {
	controller.SetOptionalKindsServed[*lattice.LatticeJob](l.reconciler, served)
}

// edit updates the LatticeJob as a user would.
func (l *latticeWorld) edit(change func(*lattice.LatticeJob)) {
	l.t.Helper()
	var job lattice.LatticeJob
	if err := l.api.Get(l.t.Context(), client.ObjectKey{Namespace: "ns", Name: "job"}, &job); err != nil {
		l.t.Fatal(err)
	}
	change(&job)
	if err := l.api.Update(l.t.Context(), &job); err != nil {
		l.t.Fatal(err)
	}
}

// TestNoJobIsReconciledBeforeOptionalKindsAreKnown: an operator that has just started must not assume that Volcano is
// missing, or waiting jobs would lose their Workloads and thus their places in the queue.
func TestNoJobIsReconciledBeforeOptionalKindsAreKnown(t *testing.T) {
	w := newExternalWorld(t)
	w.setVolcanoServed(true)
	w.edit(func(job *lattice.LatticeJob) { job.Spec.Queue = "cq" })
	w.settle()
	workloads := func() int { return len(list[kueue.WorkloadList](w.world).Items) }
	if n := workloads(); n != 1 {
		t.Fatalf("the waiting job has %d Workloads, want 1", n)
	}
	w.restart()
	before := w.changes
	w.reconcile()
	if w.changes != before || workloads() != 1 {
		t.Errorf("%d writes before it was known what the cluster serves, and %d Workloads are left; want none and 1",
			w.changes-before, workloads())
	}
	w.setVolcanoServed(false)
	w.settle()
	if n := workloads(); n != 0 {
		t.Errorf("without Volcano there are %d Workloads, want none", n)
	}
}

// TestJobThatALabelSendsToVolcanoReturnsItsQuota: a queue label that names a queue of Volcano's has the same effect as
// the field of the spec.
func TestJobThatALabelSendsToVolcanoReturnsItsQuota(t *testing.T) {
	w := newExternalWorld(t)
	w.setVolcanoServed(true)
	w.edit(func(job *lattice.LatticeJob) { job.Labels = map[string]string{kueue.QueueLabel: "cq"} })
	w.settle()
	if n := len(list[kueue.WorkloadList](w.world).Items); n != 1 {
		t.Fatalf("the waiting job has %d Workloads, want 1", n)
	}
	w.edit(func(job *lattice.LatticeJob) { job.Labels[kueue.QueueLabel] = "volcanos" })
	w.settle()
	if left := list[kueue.WorkloadList](w.world).Items; len(left) != 0 {
		t.Errorf("the job still has a Workload in queue %s", left[0].Spec.QueueName)
	}
}
