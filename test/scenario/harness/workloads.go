package harness

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
)

// Workload returns a Workload without a job, with one pod without requests.
func (w *World) Workload(name, queue string) *kueue.Workload {
	return &kueue.Workload{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: name},
		Spec: kueue.WorkloadSpec{QueueName: kueue.LocalQueueName(queue), PodSets: []kueue.PodSet{{
			Name: "main", Count: 1,
			Template: corev1.PodTemplateSpec{
				Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "example.com/trainer"}}}},
		}}},
	}
}

// Report sets a condition of the Workload of this name, as its job's controller would.
func (w *World) Report(name, kind string, status metav1.ConditionStatus, reason string) {
	w.Helper()
	w.ChangeStatus(name, func(s *kueue.WorkloadStatus) {
		meta.SetStatusCondition(&s.Conditions, metav1.Condition{Type: kind, Status: status, Reason: reason})
	})
}

// UntilWorkload waits until the condition holds for the Workload of this name, and returns it.
func (w *World) UntilWorkload(name, what string, holds func(*kueue.Workload) bool) *kueue.Workload {
	w.Helper()
	return UntilOne(w, &kueue.WorkloadList{}, name, what, holds)
}

// Is reports whether the Workload has a condition with the status and reason. A nil Workload has none.
func Is(w *kueue.Workload, kind string, status metav1.ConditionStatus, reason string) bool {
	if w == nil {
		return false
	}
	c := meta.FindStatusCondition(w.Status.Conditions, kind)
	return c != nil && c.Status == status && c.Reason == reason
}

// Runs reports whether the Workload is admitted and not being evicted.
func Runs(w *kueue.Workload) bool {
	return w != nil && w.Status.Admission != nil &&
		meta.IsStatusConditionTrue(w.Status.Conditions, kueue.WorkloadAdmitted) &&
		!meta.IsStatusConditionTrue(w.Status.Conditions, kueue.WorkloadEvicted)
}

// Waits reports whether a Workload has no quota, for the reason and with these words in the message.
func Waits(reason, words string) func(*kueue.Workload) bool {
	return func(w *kueue.Workload) bool {
		c := meta.FindStatusCondition(w.Status.Conditions, kueue.WorkloadQuotaReserved)
		return c != nil && c.Status == metav1.ConditionFalse && c.Reason == reason && strings.Contains(c.Message, words)
	}
}

// IsEvicted reports whether a Workload was evicted for the reason and has released its quota.
func IsEvicted(reason string) func(*kueue.Workload) bool {
	return func(w *kueue.Workload) bool {
		return w.Status.Admission == nil && Is(w, kueue.WorkloadEvicted, metav1.ConditionTrue, reason)
	}
}
