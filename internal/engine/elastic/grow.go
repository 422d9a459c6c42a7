package elastic

import "container/heap"

// Grow gives the jobs replicas, one at a time: to the highest priority first, then to the job that gains most, then
// to the first in the queue. more reports whether there is capacity for one more replica of the job at the index, and
// takes it. Grow updates the sizes in jobs.
//
// A resize costs the same for any number of replicas. So the job that got a replica gets the next one too, unless
// another job gains more by at least that cost: capacity goes to few jobs rather than to all of them.
func (p Policy) Grow(jobs []Job, more func(index int) bool) {
	indices := make([]int, len(jobs))
	for i := range jobs {
		indices[i] = i
	}
	l := newStepQueue(jobs, sizesOf(jobs), indices, p.price(), false)
	for len(l.waiting) > 0 {
		first := l.waiting[0].index
		if !more(first) {
			heap.Pop(l)
			continue
		}
		jobs[l.step()].Size++
	}
}

// sizesOf returns the sizes of the jobs.
func sizesOf(jobs []Job) []int32 {
	sizes := make([]int32, len(jobs))
	for i := range jobs {
		sizes[i] = jobs[i].Size
	}
	return sizes
}
