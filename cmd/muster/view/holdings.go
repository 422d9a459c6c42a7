package view

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/engine/quota"
	"github.com/musterhq/muster/internal/workload"
)

// holdings is what the jobs of one ClusterQueue hold. It is summed from their Workloads rather than read from the
// queue's status, which is written only every few seconds, so that the lists of jobs and of queues agree with each
// other.
type holdings struct {
	reserving, admitted int32
	reserved, used      map[flavorResource]resource.Quantity
}

type flavorResource struct {
	flavor   kueue.ResourceFlavorReference
	resource corev1.ResourceName
}

func holdingsByQueue(snapshot *Snapshot) map[string]holdings {
	byQueue := map[string]holdings{}
	for i := range snapshot.Workloads {
		w := &snapshot.Workloads[i]
		if w.Status.Admission == nil || !workload.IsTrue(w, kueue.WorkloadQuotaReserved) || workload.IsFinished(w) {
			continue
		}
		name := string(w.Status.Admission.ClusterQueue)
		held, known := byQueue[name]
		if !known {
			held.reserved, held.used = map[flavorResource]resource.Quantity{}, map[flavorResource]resource.Quantity{}
		}
		held.reserving++
		addUsage(held.reserved, w)
		if workload.IsAdmitted(w) {
			held.admitted++
			addUsage(held.used, w)
		}
		byQueue[name] = held
	}
	return byQueue
}

// addUsage adds what a Workload holds. Reclaimable pods no longer hold quota; pods that a resize removes hold it until
// they are gone.
func addUsage(sum map[flavorResource]resource.Quantity, w *kueue.Workload) {
	for i := range w.Status.Admission.PodSetAssignments {
		assignment := &w.Status.Admission.PodSetAssignments[i]
		left, given := workload.PodsHoldingQuota(w, assignment)
		for name, amount := range usageOf(assignment, left, given) {
			amount.Add(terminatingUsage(w, assignment, name))
			key := flavorResource{assignment.Flavors[name], name}
			total := sum[key]
			total.Add(amount)
			sum[key] = total
		}
	}
}

// usageOf returns the share of left pods in the usage of an assignment for given pods.
func usageOf(a *kueue.PodSetAssignment, left, given int32) corev1.ResourceList {
	out := a.ResourceUsage.DeepCopy()
	for name, amount := range out {
		if left < given {
			out[name] = quota.ToQuantity(name, quota.FromQuantity(name, amount)/int64(given)*int64(left))
		}
	}
	return out
}

// terminatingUsage returns how much of the resource is used, beyond the assignment, by pods that a resize removes and
// that are not gone yet.
func terminatingUsage(w *kueue.Workload, a *kueue.PodSetAssignment, name corev1.ResourceName) resource.Quantity {
	for _, uses := range w.Status.ResourceRequests {
		if more := uses.Resources[name].DeepCopy(); uses.Name == a.Name && more.Cmp(a.ResourceUsage[name]) > 0 {
			more.Sub(a.ResourceUsage[name])
			return more
		}
	}
	return resource.Quantity{}
}

// quota returns how much of one resource in one flavor is held, together with the queue's quota.
func (h holdings) quota(flavor kueue.ResourceFlavorReference, has *kueue.ResourceQuota) Quota {
	key := flavorResource{flavor, has.Name}
	q := Quota{Flavor: string(flavor), Resource: has.Name, Used: h.used[key], Reserved: h.reserved[key],
		Nominal: has.NominalQuota}
	if beyond := q.Reserved.DeepCopy(); beyond.Cmp(q.Nominal) > 0 {
		beyond.Sub(q.Nominal)
		q.Borrowed = beyond
	}
	return q
}
