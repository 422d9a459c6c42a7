package workload

import (
	"slices"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/api/muster"
)

// Wanted returns the most pods that the job wants of an elastic pod set, for a job that was made smaller while its
// Workload holds quota, but no less than minCount, below which the API server accepts no assignment. By default it is
// the pod set's count.
func Wanted(w *kueue.Workload, podSet *kueue.PodSet) int32 {
	n, err := strconv.ParseInt(w.Annotations[muster.MaxReplicasAnnotation], 10, 32)
	if err != nil || n <= 0 {
		return podSet.Count
	}
	return min(max(int32(n), ptr.Deref(podSet.MinCount, 0)), podSet.Count)
}

// Want sets the value that Wanted reads, or removes it for 0.
func Want(w *kueue.Workload, pods int32) {
	if pods == 0 {
		delete(w.Annotations, muster.MaxReplicasAnnotation)
		return
	}
	metav1.SetMetaDataAnnotation(&w.ObjectMeta, muster.MaxReplicasAnnotation, strconv.Itoa(int(pods)))
}

// IsTied reports whether the pods are placed in slices, or together with the pods of another pod set. Queues resize a
// tied pod set only for a job that wants fewer pods.
func IsTied(podSet *kueue.PodSet) bool {
	asked := podSet.TopologyRequest
	return asked != nil && (asked.PodSetSliceRequiredTopology != nil ||
		len(asked.PodsetSliceRequiredTopologyConstraints) > 0 || asked.PodSetGroupName != nil)
}

// FinishShrink releases what the surplus pods of a pod set used, once they are gone. Until then the resourceRequests
// of an admitted Workload have, for a pod set that shrinks, its remaining requests plus what the surplus pods use.
func FinishShrink(w *kueue.Workload, podSet kueue.PodSetReference) {
	w.Status.ResourceRequests = slices.DeleteFunc(w.Status.ResourceRequests,
		func(r kueue.PodSetRequest) bool { return r.Name == podSet })
	if len(w.Status.ResourceRequests) == 0 {
		w.Status.ResourceRequests = nil
	}
}

// ShrinksTo returns the pod sets of an admitted Workload that must lose pods, with the number that each keeps.
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
