package view

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/engine/quota"
	"github.com/musterhq/muster/internal/podspec"
	"github.com/musterhq/muster/internal/workload"
)

// Ask is what one pod set requests and, once admitted, what it was granted.
type Ask struct {
	PodSet string `json:"podSet"`
	Pods   int32  `json:"pods"`
	// Fewest is the minimum count with which a waiting job can start; absent if it needs all pods. Given is the
	// admitted count, absent if it equals Pods. Left is how many of these still hold quota, absent if all do: fewer do
	// if pods have ended or the job was shrunk.
	// Together is how many pods a waiting job needs of whichever pod sets; absent if this one must have some.
	Fewest   int32                          `json:"fewest,omitempty"`
	Together int32                          `json:"together,omitempty"`
	Given    *int32                         `json:"given,omitempty"`
	Left     *int32                         `json:"left,omitempty"`
	PerPod   corev1.ResourceList            `json:"perPod,omitempty"`
	Flavors  map[corev1.ResourceName]string `json:"flavors,omitempty"`
	// Near lists the topology constraints of the pods, the widest level first. Group is the name of the pod set group
	// that is placed together; "" if none.
	Near  []Nearness `json:"near,omitempty"`
	Group string     `json:"group,omitempty"`
}

func asksOf(w *kueue.Workload) []Ask {
	asks := make([]Ask, 0, len(w.Spec.PodSets))
	for i := range w.Spec.PodSets {
		podSet := &w.Spec.PodSets[i]
		ask := Ask{PodSet: string(podSet.Name), Pods: podSet.Count, PerPod: podspec.Requests(podSet.Template.Spec),
			Near: nearnessOf(podSet)}
		if podSet.TopologyRequest != nil {
			ask.Group = ptr.Deref(podSet.TopologyRequest.PodSetGroupName, "")
		}
		if admission := w.Status.Admission; admission != nil {
			for j := range admission.PodSetAssignments {
				if assignment := &admission.PodSetAssignments[j]; assignment.Name == podSet.Name {
					ask.Flavors = flavorNames(assignment.Flavors)
					ask.PerPod = withAdmittedUsage(ask.PerPod, assignment)
					if given := assignment.Count; given != nil && *given < podSet.Count {
						ask.Given = given
					}
					if left, given := workload.PodsHoldingQuota(w, assignment); left < given && !workload.IsFinished(w) {
						ask.Left = &left
					}
				}
			}
		}
		asks = append(asks, ask)
	}
	return asks
}

// withAdmittedUsage returns perPod with the amounts that quota was granted for: LimitRanges and RuntimeClasses may have
// raised them.
func withAdmittedUsage(perPod corev1.ResourceList, given *kueue.PodSetAssignment) corev1.ResourceList {
	pods := int64(ptr.Deref(given.Count, 0))
	if pods == 0 {
		return perPod
	}
	out := maps.Clone(perPod)
	for name, usage := range given.ResourceUsage {
		if name == corev1.ResourcePods || usage.IsZero() {
			continue
		}
		if out == nil {
			out = corev1.ResourceList{}
		}
		out[name] = quota.ToQuantity(name, quota.FromQuantity(name, usage)/pods)
	}
	return out
}

func flavorNames(flavors map[corev1.ResourceName]kueue.ResourceFlavorReference) map[corev1.ResourceName]string {
	names := make(map[corev1.ResourceName]string, len(flavors))
	for resource, flavor := range flavors {
		names[resource] = string(flavor)
	}
	return names
}
