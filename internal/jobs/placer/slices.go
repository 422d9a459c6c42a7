package placer

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Each slice of a pod set must be in one domain of the topology, so a pod may only take a place of its own slice.
// Slices that have places on the same node are in the same domain and may swap places: together they are one part.

// divide divides the places of the group into parts. size is the size of the pod set's slices, 0 if it has none, and
// first the rank in the pod set of the group's first place. Without a rank of each pod, nothing tells slices apart:
// then all places are one part.
func (g *groupPlaces) divide(size, first int32, pods []*corev1.Pod) {
	all := g.places.Count()
	unranked := func(pod *corev1.Pod) bool {
		rank, ok := g.rankOf(pod)
		return !ok || rank >= all
	}
	if size <= 0 || slices.ContainsFunc(pods, unranked) {
		return
	}
	g.sliceSize, g.first = size, first
	g.parts = make([]int32, g.sliceOf(all-1)+1)
	for i := range g.parts {
		g.parts[i] = int32(i)
	}
	rank := int32(0)
	for _, place := range g.places {
		d := g.domains[place.Key()]
		if !d.inSlice {
			d.inSlice, d.slice = true, g.sliceOf(rank)
		}
		for s := g.sliceOf(rank); s <= g.sliceOf(rank+place.Count-1); s++ {
			g.parts[g.partOfSlice(s)] = g.partOfSlice(d.slice)
		}
		rank += place.Count
	}
}

// sliceOf returns the slice of a rank of the group, counted from the group's first one.
func (g *groupPlaces) sliceOf(rank int32) int32 {
	return (g.first+rank)/g.sliceSize - g.first/g.sliceSize
}

// partOfSlice returns the part of a slice: a slice that is its own part represents it.
func (g *groupPlaces) partOfSlice(s int32) int32 {
	for g.parts[s] != s {
		s = g.parts[s]
	}
	return s
}

// partOf returns the part of the group that the pod belongs to.
func (g *groupPlaces) partOf(pod *corev1.Pod) int32 {
	if g.parts == nil {
		return 0
	}
	rank, _ := g.rankOf(pod)
	return g.partOfSlice(g.sliceOf(rank))
}

// partAt returns the part of the group that the domain's places belong to.
func (g *groupPlaces) partAt(d *domain) int32 {
	if g.parts == nil {
		return 0
	}
	return g.partOfSlice(d.slice)
}

// intruders returns pods of other parts that must make room, given how many pods of each part wait for a place: the
// pods that have progressed least, and no more than are needed beyond the terminating ones. Without this the pods of a
// slice whose places others have taken would wait for ever.
func (g *groupPlaces) intruders(waiting map[int32]int32) []*corev1.Pod {
	if g.parts == nil || len(waiting) == 0 {
		return nil
	}
	in := map[int32][]*corev1.Pod{}
	for _, d := range g.domains {
		part := g.partAt(d)
		waiting[part] -= d.terminating
		for _, pod := range d.live {
			if g.partOf(pod) != part {
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
