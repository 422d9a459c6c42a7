package lifecycle

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/workload"
)

// Messages of the conditions of a requeued Workload.
const (
	reactivatedMessage       = "The workload was reactivated"
	backoffFinishedMessage   = "The workload backoff was finished"
	pendingEvaluationMessage = "Workload is pending evaluation in the scheduling queue"
)

// requeue returns a Workload without quota to its queue once what held it back is over.
func (d *draft) requeue() {
	d.retriedInQueue()
	heldBack := workload.IfFalse(d.w, kueue.WorkloadRequeued)
	if heldBack != nil && heldBack.Reason == kueue.WorkloadEvictedByPodsReadyTimeout {
		d.shortenBackoff()
	}
	waits := d.backsOff()
	if heldBack == nil {
		return
	}
	switch heldBack.Reason {
	case kueue.WorkloadEvictedByPodsReadyTimeout, kueue.WorkloadEvictedByAdmissionCheck:
		if !waits {
			d.set(kueue.WorkloadRequeued, metav1.ConditionTrue, kueue.WorkloadBackoffFinished, backoffFinishedMessage)
		}
	case kueue.WorkloadEvictedByClusterQueueStopped:
		d.resumeWhenOpen(d.clusterQueue())
	case kueue.WorkloadEvictedByLocalQueueStopped:
		d.resumeWhenOpen(d.localQueue())
	case kueue.WorkloadInadmissible: // never written here, but possible on a Workload that was migrated from Kueue
		if d.localQueue().open() {
			d.resumeWhenOpen(d.clusterQueue())
		}
	default:
		if workload.IsDeactivation(heldBack.Reason) {
			d.set(kueue.WorkloadRequeued, metav1.ConditionTrue, kueue.WorkloadReactivated, reactivatedMessage)
			d.set(kueue.WorkloadQuotaReserved, metav1.ConditionFalse, kueue.WorkloadPendingEvaluation, pendingEvaluationMessage)
		}
	}
}

// shortenBackoff ends a backoff that lasts longer than any may from now on: its end was written by a clock that was
// ahead, or under a configuration with a longer backoff. It is not for the delays that checks ask for.
func (d *draft) shortenBackoff() {
	state, latest := d.w.Status.RequeueState, metav1.NewTime(d.now.Add(d.policy.BackoffMax)).Rfc3339Copy()
	if state != nil && state.RequeueAt != nil && latest.Before(state.RequeueAt) {
		d.edit().Status.RequeueState.RequeueAt = &latest
	}
}

// backsOff reports whether the Workload's backoff lasts, and clears its end time once it has passed. The count stays,
// so that the next backoff is longer.
func (d *draft) backsOff() bool {
	state := d.w.Status.RequeueState
	if state == nil || state.RequeueAt == nil {
		return false
	}
	if !d.reached(state.RequeueAt.Time) {
		return true
	}
	w := d.edit()
	w.Status.RequeueState.RequeueAt = nil
	if w.Status.RequeueState.Count == nil {
		w.Status.RequeueState = nil
	}
	return false
}
