package flavor

import (
	"slices"

	"github.com/musterhq/muster/internal/engine/quota"
)

// Launchers and drivers often request nothing, or nothing that their queue covers. Their pods count as zero of a
// covered resource: so they get a flavor, and with the flavor its node labels, tolerations and topology, like all other
// pods of the queue.

// chooseForZero gives each pod set that has pods to run and requests no covered resource a choice of flavors for zero
// of one. A pod set of a topology group chooses in the groups of resources from which the other pod sets of its
// topology group request something: all pod sets of a topology group must get the same flavor.
func (f *Form) chooseForZero(podSets []PodSet, offer Offer, tree *quota.Tree) {
	requests := make([]bool, len(f.sets))
	for i := range f.sets {
		requests[i] = len(f.sets[i].choices) > 0
	}
	for i := range f.sets {
		if requests[i] || f.sets[i].needed == 0 {
			continue
		}
		for _, g := range offer.Groups {
			if len(g.Resources) > 0 && f.chosenWith(podSets, requests, i, g) {
				f.sets[i].choices = append(f.sets[i].choices, zeroOf(podSets[i], g, offer, tree))
			}
		}
		if len(f.sets[i].choices) == 0 {
			f.sets[i].choices = firstForZero(podSets[i], offer, tree)
		}
	}
}

// chosenWith reports whether a pod set with requests is in the topology group of the i-th pod set and requests
// something from the group of resources.
func (f *Form) chosenWith(podSets []PodSet, requests []bool, i int, g Group) bool {
	for j := range f.sets {
		if requests[j] && podSets[i].groupName() != "" && podSets[j].groupName() == podSets[i].groupName() &&
			slices.ContainsFunc(f.sets[j].choices,
				func(c formGroup) bool { return slices.Contains(g.Resources, c.resources[0]) }) {
			return true
		}
	}
	return false
}

// firstForZero returns the choice in the first group of resources that has a flavor for the pods, or else in the first
// one, whose flavors then say why they refuse the pods. It is nil if the queue has no flavors.
func firstForZero(ps PodSet, offer Offer, tree *quota.Tree) []formGroup {
	var out []formGroup
	for _, g := range offer.Groups {
		if len(g.Resources) == 0 || len(g.Flavors) == 0 {
			continue
		}
		group := zeroOf(ps, g, offer, tree)
		if slices.ContainsFunc(group.flavors, func(known formFlavor) bool { return known.refusal == "" }) {
			return []formGroup{group}
		}
		if out == nil {
			out = []formGroup{group}
		}
	}
	return out
}

// zeroOf returns the choice for zero of the first resource of the group.
func zeroOf(ps PodSet, g Group, offer Offer, tree *quota.Tree) formGroup {
	group := formGroup{resources: g.Resources[:1:1], perPod: []int64{0}}
	group.addFlavors(ps, g, offer, tree)
	return group
}

// groupName returns the topology group of the pod set, "" for none.
func (ps *PodSet) groupName() string {
	if ps.Topology == nil {
		return ""
	}
	return ps.Topology.Group
}
