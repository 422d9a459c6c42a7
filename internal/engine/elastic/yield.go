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

// Yielding is how jobs give room to somebody of a priority, one step after the other: the
// lowest priority first, and in each one replica at a time of who loses least by it, of
// equal ones who stands last in the queue, down to their minima; then, of a lower priority
// than his, whole jobs, who stands last first. Of his own priority nobody stops, of a higher
// one nobody yields. Who gives one goes on until another would lose less by more than that his
// resize costs, too. Steps are found as far as they are asked for; until all that are wanted
// have been, the jobs given stay as they are.
type Yielding struct {
	policy Policy
	to     int32
	given  []Job
	steps  []Step
	// spared are the places of those who do not yield, in order.
	spared []int
	// sizes are as the steps leave them, nil before the first. levels are those to come, line and
	// stops what is left of the one that is under way.
	sizes  []int32
	levels [][]int
	line   *line
	stops  []int
	// length is how many steps there are, below how many of them lower priorities take.
	length, below int
}

// Yielding is how the jobs yield to somebody of a priority, but for the spared ones.
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

// yields reports whether the job at that place may have to.
func (y *Yielding) yields(index int) bool {
	if y.given[index].Priority > y.to {
		return false
	}
	_, spared := slices.BinarySearch(y.spared, index)
	return !spared
}

// begin is before the first step.
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

// Len is how many steps there are, and Below how many that jobs of lower priorities take,
// which come first.
func (y *Yielding) Len() int   { return y.length }
func (y *Yielding) Below() int { return y.below }

// Steps are the first so many steps.
func (y *Yielding) Steps(n int) []Step {
	for len(y.steps) < n && y.step() {
	}
	return y.steps[:min(n, len(y.steps))]
}

// Sizes are those of all jobs once so many steps were taken.
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

// step finds the next one, false if there is none.
func (y *Yielding) step() bool {
	if y.sizes == nil {
		y.begin()
	}
	for {
		switch {
		case y.line != nil && len(y.line.waiting) > 0:
			index := y.line.step()
			y.steps = append(y.steps, Step{index, y.sizes[index]})
			return true
		case len(y.stops) > 0:
			y.line = nil
			y.steps = append(y.steps, Step{y.stops[0], 0})
			y.stops = y.stops[1:]
			return true
		case len(y.levels) == 0:
			return false
		}
		level := y.levels[0]
		y.levels = y.levels[1:]
		y.line = newLine(y.given, y.sizes, level, y.policy.price(), true)
		if y.given[level[0]].Priority < y.to {
			y.stops = slices.SortedFunc(slices.Values(level), func(a, b int) int { return y.given[b].compare(&y.given[a]) })
		}
	}
}
