package workload

import (
	"slices"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/api/muster"
)

// Wanted is how many pods of an elastic pod set the job wants at most, since it was made smaller while its Workload holds quota, and its
// minCount at least, below which the API server lets no assignment be; its count where nobody has said so.
func Wanted(w *kueue.Workload, podSet *kueue.PodSet) int32 {
	n, err := strconv.ParseInt(w.Annotations[muster.MaxReplicasAnnotation], 10, 32)
	if err != nil || n <= 0 {
		return podSet.Count
	}
	return min(max(int32(n), ptr.Deref(podSet.MinCount, 0)), podSet.Count)
}

// Want has the Workload say so, or no more for 0.
func Want(w *kueue.Workload, pods int32) {
	if pods == 0 {
		delete(w.Annotations, muster.MaxReplicasAnnotation)
		return
	}
	metav1.SetMetaDataAnnotation(&w.ObjectMeta, muster.MaxReplicasAnnotation, strconv.Itoa(int(pods)))
}

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
