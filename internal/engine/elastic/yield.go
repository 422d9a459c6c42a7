package elastic

import (
	"maps"
	"slices"
)

// Step is a job that has fewer replicas than before, none for one that has to stop.
type Step struct {
	Index int
	To    int32
}

// Yields lists how the jobs give room to somebody of a priority, one step after the other:
// the lowest priority first, and in each one replica at a time of who loses least by it, of
// equal ones who stands last in the queue, down to their minima; then, of a lower priority
// than his, whole jobs, who stands last first. Of his own priority nobody stops, of a higher
// one nobody yields. Who gives one goes on until another would lose less by more than that his
// resize costs, too.
func (p Policy) Yields(jobs []Job, to int32) []Step {
	levels := map[int32][]int{}
	for i := range jobs {
		if jobs[i].Priority <= to {
			levels[jobs[i].Priority] = append(levels[jobs[i].Priority], i)
		}
	}
	sizes := slices.Clone(jobs)
	var out []Step
	for _, level := range slices.Sorted(maps.Keys(levels)) {
		out = p.shrink(out, sizes, levels[level])
		if level < to {
			out = stop(out, sizes, levels[level])
		}
	}
	return out
}

// shrink adds the steps to the minima.
func (p Policy) shrink(out []Step, jobs []Job, level []int) []Step {
	for l := newLine(jobs, level, p.price(), true); len(l.waiting) > 0; l.stepped() {
		job := &jobs[l.waiting[0].index]
		job.Size--
		out = append(out, Step{l.waiting[0].index, job.Size})
	}
	return out
}

// stop adds the steps to none.
func stop(out []Step, jobs []Job, level []int) []Step {
	last := slices.SortedFunc(slices.Values(level), func(a, b int) int { return jobs[b].compare(&jobs[a]) })
	for _, index := range last {
		out = append(out, Step{index, 0})
	}
	return out
}
