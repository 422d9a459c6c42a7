package workload

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
)

// ConditionMessageBytes is the API's limit for the message of a condition, and of an admission check.
const ConditionMessageBytes = 32768

// SetCondition sets a condition of the Workload for its current generation. The transition time changes only with the
// status; a message beyond the API's limit is truncated.
func SetCondition(w *kueue.Workload, kind string, status metav1.ConditionStatus,
	reason, message string, now time.Time) {
	meta.SetStatusCondition(&w.Status.Conditions, metav1.Condition{
		Type: kind, Status: status, Reason: reason, Message: Cut(message, ConditionMessageBytes),
		ObservedGeneration: w.Generation, LastTransitionTime: metav1.NewTime(now),
	})
}

// IsTrue reports whether the condition is True.
func IsTrue(w *kueue.Workload, kind string) bool {
	return meta.IsStatusConditionTrue(w.Status.Conditions, kind)
}

// TrueSince returns when the condition became True, zero if it is not True.
func TrueSince(w *kueue.Workload, kind string) time.Time {
	if c := IfTrue(w, kind); c != nil {
		return c.LastTransitionTime.Time
	}
	return time.Time{}
}

// IfTrue returns the condition, nil if it is not True.
func IfTrue(w *kueue.Workload, kind string) *metav1.Condition {
	return conditionIf(w, kind, metav1.ConditionTrue)
}

// IfFalse returns the condition, nil if it is not False.
func IfFalse(w *kueue.Workload, kind string) *metav1.Condition {
	return conditionIf(w, kind, metav1.ConditionFalse)
}

func conditionIf(w *kueue.Workload, kind string, status metav1.ConditionStatus) *metav1.Condition {
	if c := meta.FindStatusCondition(w.Status.Conditions, kind); c != nil && c.Status == status {
		return c
	}
	return nil
}

// QueuedSince returns when the Workload last entered its queue: the last transition of its condition Requeued, or its
// creation if it never was evicted. If Requeued is False, that is the time since which it is out of its queue. The
// write that admits a drained Workload sets Requeued to True, so that the time that its queue was stopped never counts.
func QueuedSince(w *kueue.Workload) time.Time {
	if c := meta.FindStatusCondition(w.Status.Conditions, kueue.WorkloadRequeued); c != nil {
		return c.LastTransitionTime.Time
	}
	return w.CreationTimestamp.Time
}

// IsActive reports whether the Workload is active, that is, not deactivated.
func IsActive(w *kueue.Workload) bool { return ptr.Deref(w.Spec.Active, true) }

// IsFinished reports whether the Workload has finished.
func IsFinished(w *kueue.Workload) bool { return IsTrue(w, kueue.WorkloadFinished) }

// IsEvicted reports whether the Workload is evicted and has not been admitted again since.
func IsEvicted(w *kueue.Workload) bool { return IsTrue(w, kueue.WorkloadEvicted) }

// IsAdmitted reports whether the Workload is admitted and may run.
func IsAdmitted(w *kueue.Workload) bool { return IsTrue(w, kueue.WorkloadAdmitted) }

// HoldsQuota reports whether the Workload holds quota, which an evicted one does until its pods are gone.
func HoldsQuota(w *kueue.Workload) bool { return w.Status.Admission != nil }
