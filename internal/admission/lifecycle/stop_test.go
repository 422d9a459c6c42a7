package lifecycle_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/api/muster"
	"github.com/musterhq/muster/internal/admission/lifecycle"
	"github.com/musterhq/muster/internal/workload"
)

func TestADrainedQueueEvictsAdmittedWorkloads(t *testing.T) {
	for name, test := range map[string]struct {
		facts lifecycle.Facts
		want  string
	}{
		"the ClusterQueue": {stopping(kueue.None, kueue.HoldAndDrain),
			"Evicted=True ClusterQueueStopped: The ClusterQueue is stopped"},
		"the LocalQueue": {stopping(kueue.HoldAndDrain, kueue.None),
			"Evicted=True LocalQueueStopped: The LocalQueue is stopped"},
		"both": {stopping(kueue.HoldAndDrain, kueue.HoldAndDrain),
			"Evicted=True LocalQueueStopped: The LocalQueue is stopped"},
		"the ClusterQueue, with the LocalQueue held": {stopping(kueue.Hold, kueue.HoldAndDrain),
			"Evicted=True ClusterQueueStopped: The ClusterQueue is stopped"},
	} {
		t.Run(name, func(t *testing.T) { expectConditions(t, next(t, admitted(), test.facts, policy, 0), test.want) })
	}
}

func TestAHeldQueueKeepsAdmittedWorkloads(t *testing.T) {
	gone, ending, closed := open(), open(), open()
	closed.ClusterQueue.Annotations = map[string]string{muster.ClosedAnnotation: "true"}
	gone.LocalQueue, gone.ClusterQueue = nil, nil
	ending.ClusterQueue.DeletionTimestamp = ptr.To(metav1.NewTime(began))
	for name, facts := range map[string]lifecycle.Facts{"held": stopping(kueue.Hold, kueue.Hold), "closed": closed,
		"gone": gone, "being deleted": ending} {
		t.Run(name, func(t *testing.T) {
			if step := next(t, admitted(), facts, policy, 0); step.Writes() {
				t.Errorf("step = %+v, want none", step)
			}
		})
	}
}

func TestAStoppedQueueReleasesReservationsWithoutAnEviction(t *testing.T) {
	noLocalQueue, noClusterQueue, endingLocal, ending, closed := checking("x"), checking("x"), checking("x"),
		checking("x"), checking("x")
	closed.ClusterQueue.Annotations = map[string]string{muster.ClosedAnnotation: "true"}
	noLocalQueue.LocalQueue, noClusterQueue.ClusterQueue = nil, nil
	endingLocal.LocalQueue.DeletionTimestamp = ptr.To(metav1.NewTime(began))
	ending.ClusterQueue.DeletionTimestamp = ptr.To(metav1.NewTime(began))
	for name, test := range map[string]struct {
		facts lifecycle.Facts
		want  string
	}{
		"a held ClusterQueue": {stopping(kueue.None, kueue.Hold),
			"QuotaReserved=False OnHold: ClusterQueue cq is stopped"},
		"a drained ClusterQueue": {stopping(kueue.None, kueue.HoldAndDrain),
			"QuotaReserved=False OnHold: ClusterQueue cq is stopped"},
		"a closed ClusterQueue": {closed, "QuotaReserved=False OnHold: ClusterQueue cq is stopped"},
		"a held LocalQueue": {stopping(kueue.Hold, kueue.None),
			"QuotaReserved=False OnHold: LocalQueue q is stopped"},
		"a missing LocalQueue":     {noLocalQueue, "QuotaReserved=False Inadmissible: LocalQueue q doesn't exist"},
		"a terminating LocalQueue": {endingLocal, "QuotaReserved=False Inadmissible: LocalQueue q is being deleted"},
		"a missing ClusterQueue":   {noClusterQueue, "QuotaReserved=False Inadmissible: ClusterQueue cq doesn't exist"},
		"a terminating ClusterQueue": {ending,
			"QuotaReserved=False Inadmissible: ClusterQueue cq is inactive: Can't admit new workloads; clusterQueue is terminating"},
	} {
		t.Run(name, func(t *testing.T) {
			step := next(t, reserved().check("x", kueue.CheckStatePending), test.facts, policy, 0)
			expectConditions(t, step, test.want, "Admitted=False NoReservation: The workload has no reservation")
			if workload.IsEvicted(step.Status) || workload.HoldsQuota(step.Status) {
				t.Errorf("status = %+v, want the quota released without an eviction", step.Status.Status)
			}
		})
	}
}

func TestADrainedWorkloadIsRequeuedWhenTheQueueRestarts(t *testing.T) {
	closed := open()
	closed.ClusterQueue.Annotations = map[string]string{muster.ClosedAnnotation: "true"}
	for name, test := range map[string]struct {
		reason string
		facts  lifecycle.Facts
		want   string
	}{
		"the ClusterQueue restarts": {kueue.WorkloadEvictedByClusterQueueStopped, open(),
			"Requeued=True ClusterQueueRestarted: The ClusterQueue was restarted after being stopped"},
		"the LocalQueue restarts": {kueue.WorkloadEvictedByLocalQueueStopped, open(),
			"Requeued=True LocalQueueRestarted: The LocalQueue was restarted after being stopped"},
		"only the LocalQueue restarts": {kueue.WorkloadEvictedByLocalQueueStopped,
			stopping(kueue.None, kueue.Hold), "Requeued=True LocalQueueRestarted: The LocalQueue was restarted after being stopped"},
		"the ClusterQueue is held instead": {kueue.WorkloadEvictedByClusterQueueStopped,
			stopping(kueue.None, kueue.Hold), ""},
		"the ClusterQueue is closed instead": {kueue.WorkloadEvictedByClusterQueueStopped, closed, ""},
		"the LocalQueue is still drained": {kueue.WorkloadEvictedByLocalQueueStopped,
			stopping(kueue.HoldAndDrain, kueue.None), ""},
		"kept out by Kueue, and the LocalQueue is stopped": {kueue.WorkloadInadmissible,
			stopping(kueue.Hold, kueue.None), ""},
		"kept out by Kueue, and the queues are open": {kueue.WorkloadInadmissible, open(),
			"Requeued=True ClusterQueueRestarted: The ClusterQueue was restarted after being stopped"},
		"the queue does not exist": {kueue.WorkloadEvictedByClusterQueueStopped, lifecycle.Facts{}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			step := next(t, pending().evicted(test.reason).is(kueue.WorkloadRequeued, metav1.ConditionFalse, test.reason),
				test.facts, policy, time.Hour)
			if test.want != "" {
				expectConditions(t, step, test.want)
			} else if step.Writes() {
				t.Errorf("step = %+v, want none", step)
			}
		})
	}
}
