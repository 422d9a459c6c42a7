package view

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/engine/quota"
	"github.com/musterhq/muster/internal/workload"
)

// Ask is what one pod set wants, and what it was given once admitted.
type Ask struct {
	PodSet string `json:"podSet"`
	Pods   int32  `json:"pods"`
	// Fewest is how few it can start with, of a job that waits; absent if it needs all. Given is with how many it was
	// admitted; absent if with all. Left is for how many of these it holds quota, absent if for all: the others have ended, or it was
	// made smaller.
	Fewest  int32                          `json:"fewest,omitempty"`
	Given   *int32                         `json:"given,omitempty"`
	Left    *int32                         `json:"left,omitempty"`
	PerPod  corev1.ResourceList            `json:"perPod,omitempty"`
	Flavors map[corev1.ResourceName]string `json:"flavors,omitempty"`
	// Near is how near each other the pods are to be, level by level, the widest first; Group the name of the group whose pod sets are to be
	// together, "" if it is in none.
	Near  []Nearness `json:"near,omitempty"`
	Group string     `json:"group,omitempty"`
}

func asksOf(w *kueue.Workload) []Ask {
	asks := make([]Ask, 0, len(w.Spec.PodSets))
	for i := range w.Spec.PodSets {
		podSet := &w.Spec.PodSets[i]
		ask := Ask{PodSet: string(podSet.Name), Pods: podSet.Count, PerPod: podRequests(&podSet.Template), Near: nearnessOf(podSet)}
		if podSet.TopologyRequest != nil {
			ask.Group = ptr.Deref(podSet.TopologyRequest.PodSetGroupName, "")
		}
		if admission := w.Status.Admission; admission != nil {
			for j := range admission.PodSetAssignments {
				if assignment := &admission.PodSetAssignments[j]; assignment.Name == podSet.Name {
					ask.Flavors = flavorNames(assignment.Flavors)
					ask.PerPod = asGiven(ask.PerPod, assignment)
					if given := assignment.Count; given != nil && *given < podSet.Count {
						ask.Given = given
					}
					if left, given := workload.Left(w, assignment); left < given && !workload.IsFinished(w) {
						ask.Left = &left
					}
				}
			}
		}
		asks = append(asks, ask)
	}
	return asks
}

// asGiven is what one pod asks with what it was given quota for: LimitRanges and RuntimeClasses have added to that.
func asGiven(perPod corev1.ResourceList, given *kueue.PodSetAssignment) corev1.ResourceList {
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
