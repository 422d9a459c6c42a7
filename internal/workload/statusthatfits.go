package workload

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/ptr"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
)

// TooLargeMessage is the message of QuotaReserved on a Workload that lost its quota InBrief. It is no longer than the
// one that it replaces.
const TooLargeMessage = "Evicted; too large to say why"

// InBrief returns a shorter form of the desired status, for a Workload that is so large that the API server refuses the
// desired one. It is nil if the desired status takes no quota from the Workload: then nobody waits for the write.
//
// Whoever may annotate a Workload could otherwise pad it after its admission until it cannot be evicted any more. The
// short form takes the quota at once, for which the Workload gets smaller than it was seen: its admission goes, and no
// condition is added. So it always fits. (The API server itself omits managedFields if an object does not fit with
// them.) The price: the status does not say why, and until the pods are stopped, because their Workload has no quota,
// they use what others may have been given.
func InBrief(seen, desired *kueue.Workload) *kueue.Workload {
	evicts := IsEvicted(desired) && !IsEvicted(seen)
	if !HoldsQuota(seen) || IsFinished(desired) || HoldsQuota(desired) && !evicts && podsOf(desired) >= podsOf(seen) {
		return nil
	}
	out := seen.DeepCopy()
	Release(out, kueue.WorkloadPendingEvaluation, TooLargeMessage, lastTransition(desired))
	return out
}

// IsEvictedInBrief reports whether the Workload lost its quota InBrief, and has not been considered since.
func IsEvictedInBrief(w *kueue.Workload) bool {
	c := meta.FindStatusCondition(w.Status.Conditions, kueue.WorkloadQuotaReserved)
	return !HoldsQuota(w) && c != nil && c.Message == TooLargeMessage
}

// podsOf returns how many pods a Workload that holds quota was admitted with.
func podsOf(w *kueue.Workload) (pods int64) {
	for i := range w.Status.Admission.PodSetAssignments {
		pods += int64(ptr.Deref(w.Status.Admission.PodSetAssignments[i].Count, 0))
	}
	return pods
}

// lastTransition returns when the status changed last.
func lastTransition(w *kueue.Workload) (last time.Time) {
	for i := range w.Status.Conditions {
		if at := w.Status.Conditions[i].LastTransitionTime.Time; at.After(last) {
			last = at
		}
	}
	return last
}
