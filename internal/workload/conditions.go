package workload

import (
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
)

// conditionMessageBytes is the API's limit of the message of a condition, and of an admission check.
const conditionMessageBytes = 32768

// SetCondition sets a condition of the Workload as of its present generation. Its transition time moves only if the status
// changes; a message beyond the API's limit is cut.
func SetCondition(w *kueue.Workload, kind string, status metav1.ConditionStatus, reason, message string, now time.Time) {
	meta.SetStatusCondition(&w.Status.Conditions, metav1.Condition{
		Type: kind, Status: status, Reason: reason, Message: cut(message),
		ObservedGeneration: w.Generation, LastTransitionTime: metav1.NewTime(now),
	})
}

// IsTrue reports whether the condition is True.
func IsTrue(w *kueue.Workload, kind string) bool {
	return meta.IsStatusConditionTrue(w.Status.Conditions, kind)
}

// TrueSince is when the condition became True, zero if it is not.
func TrueSince(w *kueue.Workload, kind string) time.Time {
	if c := meta.FindStatusCondition(w.Status.Conditions, kind); c != nil && c.Status == metav1.ConditionTrue {
		return c.LastTransitionTime.Time
	}
	return time.Time{}
}

// IsActive reports whether nobody has deactivated the Workload.
func IsActive(w *kueue.Workload) bool { return ptr.Deref(w.Spec.Active, true) }

// IsFinished reports whether the Workload's job has ended.
func IsFinished(w *kueue.Workload) bool { return IsTrue(w, kueue.WorkloadFinished) }

// IsEvicted reports whether the Workload's admission is being, or was, taken back.
func IsEvicted(w *kueue.Workload) bool { return IsTrue(w, kueue.WorkloadEvicted) }

// IsAdmitted reports whether the Workload may run.
func IsAdmitted(w *kueue.Workload) bool { return IsTrue(w, kueue.WorkloadAdmitted) }

// HoldsQuota reports whether the Workload holds quota. One that is evicted does until its pods are gone.
func HoldsQuota(w *kueue.Workload) bool { return w.Status.Admission != nil }

// cut shortens a message to what the API takes, without breaking a character.
func cut(message string) string {
	return strings.ToValidUTF8(message[:min(len(message), conditionMessageBytes)], "")
}
