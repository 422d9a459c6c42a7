package placer

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Each slice of a pod set must be in one domain of the topology, so a pod may only take a place of its own slice. Slices
// that have places on the same node are in the same domain and may swap places: together they are one part.

// divide divides the places of the group into parts. size is the size of the pod set's slices, 0 if it has none, and
// first the rank in the pod set of the group's first place. Without a rank of each pod, nothing tells slices apart: then
// all places are one part.
func (r *groupPlaces) divide(size, first int32, pods []*corev1.Pod, rankOf func(*corev1.Pod) (int32, bool)) {
	all := r.places.Count()
	unranked := func(pod *corev1.Pod) bool {
		rank, ok := rankOf(pod)
		return !ok || rank >= all
	}
	if size <= 0 || slices.ContainsFunc(pods, unranked) {
		return
	}
	r.sliceSize, r.first = size, first
	r.parts = make([]int32, r.sliceOf(all-1)+1)
	for i := range r.parts {
		r.parts[i] = int32(i)
	}
	rank := int32(0)
	for _, place := range r.places {
		d := r.domains[place.Key()]
		if !d.inSlice {
			d.inSlice, d.slice = true, r.sliceOf(rank)
		}
		for s := r.sliceOf(rank); s <= r.sliceOf(rank+place.Count-1); s++ {
			r.parts[r.partOfSlice(s)] = r.partOfSlice(d.slice)
		}
		rank += place.Count
	}
}

// sliceOf returns the slice of a rank of the group, counted from the group's first one.
func (r *groupPlaces) sliceOf(rank int32) int32 {
	return (r.first+rank)/r.sliceSize - r.first/r.sliceSize
}

// partOfSlice returns the part of a slice: a slice that is its own part represents it.
func (r *groupPlaces) partOfSlice(s int32) int32 {
	for r.parts[s] != s {
		s = r.parts[s]
	}
	return s
}

// partOf returns the part of the group that the pod belongs to.
func (r *groupPlaces) partOf(pod *corev1.Pod, rankOf func(*corev1.Pod) (int32, bool)) int32 {
	if r.parts == nil {
		return 0
	}
	rank, _ := rankOf(pod)
	return r.partOfSlice(r.sliceOf(rank))
}

// partAt returns the part of the group that the domain's places belong to.
func (r *groupPlaces) partAt(d *domain) int32 {
	if r.parts == nil {
		return 0
	}
	return r.partOfSlice(d.slice)
}

// intruders returns pods of other parts that must make room, given how many pods of each part wait for a place: those
// that have progressed least, and no more than are not made room for by terminating pods. Without this the pods of a
// slice whose places others have taken would wait for ever.
func (r *groupPlaces) intruders(waiting map[int32]int32, rankOf func(*corev1.Pod) (int32, bool)) []*corev1.Pod {
	if r.parts == nil || len(waiting) == 0 {
		return nil
	}
	in := map[int32][]*corev1.Pod{}
	for _, d := range r.domains {
		part := r.partAt(d)
		waiting[part] -= d.terminating
		for _, pod := range d.live {
			if r.partOf(pod, rankOf) != part {
				in[part] = append(in[part], pod)
			}
		}
	}
	var out []*corev1.Pod
	for part, pods := range in {
		slices.SortFunc(pods, func(a, b *corev1.Pod) int {
			return cmp.Or(cmp.Compare(progress(a), progress(b)), cmp.Compare(a.Name, b.Name))
		})
		out = append(out, pods[:min(len(pods), int(max(0, waiting[part])))]...)
	}
	return out
}
