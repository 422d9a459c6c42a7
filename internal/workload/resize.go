package workload

import (
	"slices"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
)

// FinishShrink gives back what pods of the pod set used that were told to go, now that they are gone. While a Workload is
// admitted its resourceRequests say what such pod sets use until then, beside what they were left with.
func FinishShrink(w *kueue.Workload, podSet kueue.PodSetReference) {
	w.Status.ResourceRequests = slices.DeleteFunc(w.Status.ResourceRequests, func(r kueue.PodSetRequest) bool { return r.Name == podSet })
	if len(w.Status.ResourceRequests) == 0 {
		w.Status.ResourceRequests = nil
	}
}

// ShrinksTo lists the pod sets of an admitted Workload that have pods to lose, with how many they may keep.
func ShrinksTo(w *kueue.Workload) map[kueue.PodSetReference]int32 {
	if w.Status.Admission == nil {
		return nil
	}
	var out map[kueue.PodSetReference]int32
	for _, r := range w.Status.ResourceRequests {
		for _, a := range w.Status.Admission.PodSetAssignments {
			if a.Name == r.Name && a.Count != nil {
				if out == nil {
					out = map[kueue.PodSetReference]int32{}
				}
				out[a.Name] = *a.Count
			}
		}
	}
	return out
}
