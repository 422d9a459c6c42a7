package workload

import (
	"k8s.io/utils/ptr"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
)

// Reclaimed returns how many pods of the pod set have ended and release their quota.
func Reclaimed(w *kueue.Workload, podSet *kueue.PodSet) int32 {
	for _, r := range w.Status.ReclaimablePods {
		if r.Name == podSet.Name {
			return max(0, min(r.Count, podSet.Count))
		}
	}
	return 0
}

// PodsHoldingQuota returns for how many pods the assignment still holds quota, and for how many it was given. Ended
// pods count against the pod set's full count: an assignment for fewer pods holds all of its quota until no more than
// that many pods are left.
func PodsHoldingQuota(w *kueue.Workload, a *kueue.PodSetAssignment) (left, given int32) {
	for i := range w.Spec.PodSets {
		if podSet := &w.Spec.PodSets[i]; podSet.Name == a.Name {
			given = ptr.Deref(a.Count, podSet.Count)
			return min(given, podSet.Count-Reclaimed(w, podSet)), given
		}
	}
	given = ptr.Deref(a.Count, 0)
	return given, given
}
