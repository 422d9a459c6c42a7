package elastic

import (
	"maps"
	"slices"
)

// Step is a smaller size for a job, 0 if it has to stop.
type Step struct {
	Index int
	To    int32
}

// Yielding is how jobs release capacity for a job of a given priority, step by step. The lowest priority comes first.
// Within a priority, the job that loses least gives a replica, or of equal ones the last in the queue, until all are
// at their minimum; a job that gave one gives the next too, unless another one loses less by more than the cost of
// its resize. Then, if the priority is lower than the given one, whole jobs stop, the last in the queue first. Jobs
// of the given priority do not stop, and those of higher ones give nothing.
//
// Steps are computed on demand; the jobs passed in must not change meanwhile.
type Yielding struct {
	policy Policy
	to     int32
	given  []Job
	steps  []Step
	// spared are the sorted indices of jobs that give nothing.
	spared []int
	// sizes are the sizes after the computed steps, nil before the first. levels are the priorities still to come,
	// queue and stops the rest of the present one.
	sizes  []int32
	levels [][]int
	queue  *stepQueue
	stops  []int
	// length is the number of steps, below the number of those taken by lower priorities.
	length, below int
}

// Yielding returns how the jobs release capacity for a job of the given priority, except for those at the spared
// indices.
func (p Policy) Yielding(jobs []Job, to int32, spared ...int) *Yielding {
	slices.Sort(spared)
	y := &Yielding{policy: p, to: to, given: jobs, spared: spared}
	for i := range jobs {
		if !y.yields(i) {
			continue
		}
		steps := int(jobs[i].Size - min(jobs[i].Min, jobs[i].Size))
		if jobs[i].Priority < to {
			steps++
			y.below += steps
		}
		y.length += steps
	}
	return y
}

// yields reports whether the job at the index may have to release capacity.
func (y *Yielding) yields(index int) bool {
	if y.given[index].Priority > y.to {
		return false
	}
	_, spared := slices.BinarySearch(y.spared, index)
	return !spared
}

// begin prepares for the first step.
func (y *Yielding) begin() {
	y.sizes = sizesOf(y.given)
	levels := map[int32][]int{}
	for i := range y.given {
		if y.yields(i) {
			levels[y.given[i].Priority] = append(levels[y.given[i].Priority], i)
		}
	}
	for _, level := range slices.Sorted(maps.Keys(levels)) {
		y.levels = append(y.levels, levels[level])
	}
}

// Len returns the number of steps, and Below the number of those taken by jobs of lower priorities, which come first.
func (y *Yielding) Len() int   { return y.length }
func (y *Yielding) Below() int { return y.below }

// Steps returns the first n steps.
func (y *Yielding) Steps(n int) []Step {
	for len(y.steps) < n && y.step() {
	}
	return y.steps[:min(n, len(y.steps))]
}

// Sizes returns the sizes of all jobs after n steps.
func (y *Yielding) Sizes(n int) []int32 {
	out := sizesOf(y.given)
	for i := range y.given {
		switch job := &y.given[i]; {
		case n < y.below || !y.yields(i):
		case n == y.length && job.Priority == y.to:
			out[i] = min(job.Min, job.Size)
		case job.Priority < y.to:
			out[i] = 0
		}
	}
	if n == y.length || n == y.below {
		return out
	}
	for _, step := range y.Steps(n) {
		out[step.Index] = step.To
	}
	return out
}

// step computes the next step; it returns false if there is none.
func (y *Yielding) step() bool {
	if y.sizes == nil {
		y.begin()
	}
	for {
		switch {
		case y.queue != nil && len(y.queue.waiting) > 0:
			index := y.queue.step()
			y.steps = append(y.steps, Step{index, y.sizes[index]})
			return true
		case len(y.stops) > 0:
			y.queue = nil
			y.steps = append(y.steps, Step{y.stops[0], 0})
			y.stops = y.stops[1:]
			return true
		case len(y.levels) == 0:
			return false
		}
		level := y.levels[0]
		y.levels = y.levels[1:]
		y.queue = newStepQueue(y.given, y.sizes, level, y.policy.price(), true)
		if y.given[level[0]].Priority < y.to {
			y.stops = slices.SortedFunc(slices.Values(level), func(a, b int) int { return y.given[b].compare(&y.given[a]) })
		}
	}
}
