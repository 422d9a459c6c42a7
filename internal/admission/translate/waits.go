package translate

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/api/muster"
	"github.com/musterhq/muster/internal/engine/reason"
	"github.com/musterhq/muster/internal/workload"
)

// QueuedAt returns the time by which the Workload is ordered in its queue: its creation time, or the one that its job
// sets by annotation. A Workload whose start failed may go behind the others, by the time of its eviction.
func (q QueuePolicy) QueuedAt(w *kueue.Workload) time.Time {
	if evicted := workload.IfTrue(w, kueue.WorkloadEvicted); evicted != nil {
		late := evicted.Reason == kueue.WorkloadEvictedByPodsReadyTimeout && q.requeueByEviction
		if late || evicted.Reason == kueue.WorkloadEvictedByAdmissionCheck {
			return evicted.LastTransitionTime.Time
		}
	}
	if queued, err := time.Parse(time.RFC3339, w.Annotations[muster.QueuedTimeAnnotation]); err == nil {
		return queued
	}
	return w.CreationTimestamp.Time
}

// backoffReason says until when, or for what, the Workload stays out of its queue; "" if it does not.
func backoffReason(w *kueue.Workload) string {
	requeued := workload.IfFalse(w, kueue.WorkloadRequeued)
	if state := w.Status.RequeueState; state != nil && state.RequeueAt != nil {
		asked := requeued != nil && requeued.Reason == kueue.WorkloadEvictedByAdmissionCheck
		if asked || ptr.Deref(state.Count, 0) == 0 {
			return fmt.Sprintf("waits until %s, as an admission check asked", state.RequeueAt.UTC().Format(time.RFC3339))
		}
		return fmt.Sprintf("waits until %s after eviction number %d for pods that were not ready",
			state.RequeueAt.UTC().Format(time.RFC3339), ptr.Deref(state.Count, 0))
	}
	if workload.IsDrained(w) {
		return "" // the stop policy of its queue holds it back, and no longer than Workloads that came later
	}
	if requeued != nil {
		return requeued.Message
	}
	return ""
}

// PendingReason returns the pending reason in the status, and its message if the message names what must be fixed.
func PendingReason(w *kueue.Workload) (code reason.Code, blamed string) {
	reserved := meta.FindStatusCondition(w.Status.Conditions, kueue.WorkloadQuotaReserved)
	if reserved == nil || reserved.Status == metav1.ConditionTrue {
		return reason.None, ""
	}
	code = reason.Code(reserved.Reason)
	if code.Actionable() {
		blamed = reserved.Message
	}
	return code, blamed
}

// MayBeAdmitted reports whether nothing about the Workload itself prevents its admission.
func MayBeAdmitted(w *kueue.Workload) bool {
	return w.DeletionTimestamp.IsZero() && workload.IsActive(w) && backoffReason(w) == "" &&
		w.Annotations[kueue.AdmissionGatedByAnnotation] == ""
}

// awaitsReadiness reports whether other workloads may have to wait until the Workload's pods are ready. The pods of a
// deleted Workload will never be ready, however long they take to terminate.
func awaitsReadiness(w *kueue.Workload) bool {
	return w.DeletionTimestamp.IsZero() && workload.ReportsReadiness(w) && !workload.IsTrue(w, kueue.WorkloadPodsReady)
}

// isLeaving reports whether the Workload is being evicted or deleted. Its condition Evicted stays true until it is
// admitted again, and says nothing about that next admission while its write is pending.
func isLeaving(w *kueue.Workload) bool {
	return workload.HoldsQuota(w) && workload.IsEvicted(w) || !w.DeletionTimestamp.IsZero()
}

// LostNodes reports whether the Workload was evicted because its nodes failed and has not been admitted since. A
// deleted Workload is not admitted again, so no capacity is kept for it.
func LostNodes(w *kueue.Workload) bool {
	evicted := workload.IfTrue(w, kueue.WorkloadEvicted)
	return w.DeletionTimestamp.IsZero() && evicted != nil && evicted.Reason == kueue.WorkloadEvictedDueToNodeFailures
}
