package model

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/musterhq/muster/internal/engine/place"
	"github.com/musterhq/muster/internal/engine/quota"
)

// Admission is the quota and the places that a workload holds.
type Admission struct {
	ClusterQueue string
	PodSets      []Assignment
	// Checks are the checks of the queue that apply. They are not part of what is held.
	Checks []string
}

// Equal reports whether two admissions give the same quota and places. Checks are not compared.
func (a *Admission) Equal(b *Admission) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.ClusterQueue == b.ClusterQueue && slices.EqualFunc(a.PodSets, b.PodSets, Assignment.Equal)
}

// IsWithin reports whether any pod set has domains but no nodes.
func (a *Admission) IsWithin() bool {
	return a != nil && slices.ContainsFunc(a.PodSets,
		func(a Assignment) bool { return len(a.Within) > 0 && len(a.Places) == 0 })
}

// OnNodes reports whether any pods are placed on nodes or in domains.
func (a *Admission) OnNodes() bool {
	return slices.ContainsFunc(a.PodSets, func(a Assignment) bool { return len(a.Places) > 0 || len(a.Within) > 0 })
}

// HasAny reports whether the admission, nil for none, has any of the flavors.
func (a *Admission) HasAny(flavors sets.Set[string]) bool {
	if a == nil {
		return false
	}
	for _, given := range a.PodSets {
		for _, flavor := range given.Flavors {
			if flavors.Has(flavor) {
				return true
			}
		}
	}
	return false
}

// Places returns the places of all pod sets.
func (a *Admission) Places() []place.Assignment {
	out := make([]place.Assignment, len(a.PodSets))
	for i := range a.PodSets {
		out[i] = place.Assignment{PodSet: a.PodSets[i].PodSet, Nodes: a.PodSets[i].Places}
	}
	return out
}

// HasSurplus reports whether pods that have to terminate still exist.
func (a *Admission) HasSurplus() bool {
	return a != nil && slices.ContainsFunc(a.PodSets, func(a Assignment) bool { return a.Surplus != nil })
}

// Pods returns the number of pods.
func (a *Admission) Pods() (sum int64) {
	for i := range a.PodSets {
		sum += int64(a.PodSets[i].Count)
	}
	return sum
}

// At returns the admission at other places.
func (a *Admission) At(found []place.Assignment) *Admission {
	given := *a
	given.PodSets = slices.Clone(given.PodSets)
	for i := range given.PodSets {
		for _, f := range found {
			if f.PodSet == given.PodSets[i].PodSet {
				given.PodSets[i].Places = f.Nodes
			}
		}
	}
	return &given
}

// Sized returns the admission with the given number of pods of the pod set at the index: more of them, at the given
// places, or fewer, of which the last ones are removed.
func (a *Admission) Sized(at int, to int32, more []place.NodeCount) *Admission {
	out := *a
	out.PodSets = slices.Clone(out.PodSets)
	set := &out.PodSets[at]
	each := PerPod(set)
	fewer := set.Count - to
	if fewer > 0 {
		set.Surplus = maps.Clone(set.Surplus)
		if set.Surplus == nil {
			set.Surplus = map[string]int64{}
		}
	}
	set.Usage = make(map[string]int64, len(each))
	for resource, amount := range each {
		set.Usage[resource] = quota.Times(amount, to)
		if fewer > 0 {
			set.Surplus[resource] = quota.Add(set.Surplus[resource], quota.Times(amount, fewer))
		}
	}
	set.Count = to
	if len(set.Places) > 0 {
		set.Places = append(first(set.Places, to), more...)
	}
	return &out
}

// first returns the places of the first pods.
func first(places []place.NodeCount, pods int32) []place.NodeCount {
	var out []place.NodeCount
	for _, p := range places {
		if p.Count = min(p.Count, pods); p.Count > 0 {
			out = append(out, p)
			pods -= p.Count
		}
	}
	return out
}

// PerPod returns what one pod of the assignment takes.
func PerPod(a *Assignment) map[string]int64 {
	out := make(map[string]int64, len(a.Usage))
	for resource, amount := range a.Usage {
		out[resource] = amount / int64(a.Count)
	}
	return out
}
