package elastic

import "container/heap"

// Grow gives the jobs replicas, one at a time: the highest priority first, then who gains
// most from it, then who stands first in the queue. more says whether there is room for one
// more of the job at that index, and takes it. Sizes in jobs follow.
//
// Who gets one loses the cost of a resize, whatever the number of them: another one is served
// only if he gains more by that cost. So room goes to few jobs rather than one by one to all.
func (p Policy) Grow(jobs []Job, more func(index int) bool) {
	indices := make([]int, len(jobs))
	for i := range jobs {
		indices[i] = i
	}
	l := newLine(jobs, sizesOf(jobs), indices, p.price(), false)
	for len(l.waiting) > 0 {
		first := l.waiting[0].index
		if !more(first) {
			heap.Pop(l)
			continue
		}
		jobs[l.step()].Size++
	}
}

// sizesOf are those that the jobs have.
func sizesOf(jobs []Job) []int32 {
	sizes := make([]int32, len(jobs))
	for i := range jobs {
		sizes[i] = jobs[i].Size
	}
	return sizes
}
