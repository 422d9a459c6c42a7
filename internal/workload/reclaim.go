package workload

import (
	"k8s.io/utils/ptr"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
)

// Reclaimed is how many pods of the pod set have ended and need nothing any more.
func Reclaimed(w *kueue.Workload, podSet *kueue.PodSet) int32 {
	for _, r := range w.Status.ReclaimablePods {
		if r.Name == podSet.Name {
			return max(0, min(r.Count, podSet.Count))
		}
	}
	return 0
}

// Left is for how many pods the assignment holds quota, of how many it was given for. Pods that have ended count against all that
// the Workload asked for: if it was given fewer, it holds all that it was given until no more than that are left.
func Left(w *kueue.Workload, a *kueue.PodSetAssignment) (left, given int32) {
	for i := range w.Spec.PodSets {
		if podSet := &w.Spec.PodSets[i]; podSet.Name == a.Name {
			given = ptr.Deref(a.Count, podSet.Count)
			return min(given, podSet.Count-Reclaimed(w, podSet)), given
		}
	}
	given = ptr.Deref(a.Count, 0)
	return given, given
}
