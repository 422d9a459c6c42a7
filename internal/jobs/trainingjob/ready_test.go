package trainingjob

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	breezeml "github.com/musterhq/muster/api/breezeml/v1"
)

// TestTheStatusCountsReadyWorkers: a pod whose container ends again and again is running, and not ready.
func TestTheStatusCountsReadyWorkers(t *testing.T) {
	crashing := pod(1).Running()
	crashing.Status.Conditions[0].Status = corev1.ConditionFalse
	job := newJob(2, 4)
	job = withStatus(checkedPlan(t, now, job.TrainingJob, admitted(2), nil), job)
	p := checkedPlan(t, now, job.TrainingJob, admitted(2), of(pod(0).Running(), crashing))
	got := withStatus(p, job).Status.ExecStatus.ReplicaStatuses[breezeml.WorkerStatuses]
	if got.Active != 2 || got.Ready == nil || *got.Ready != 1 {
		t.Errorf("%d workers run, and %v are ready; want 2 and 1", got.Active, got.Ready)
	}
}
