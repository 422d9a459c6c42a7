package elastic

import (
	"container/heap"
	"slices"
)

// line is those of some jobs who want more, or who can give back, whose turn it is first:
// by priority, by what the replica is worth, and by how they stand in the queue.
type line struct {
	jobs []Job
	// yields has those first who lose least, and of equal ones who stands last.
	yields bool
	// price is the share of his speed that a job loses who is resized.
	price   float64
	waiting []turn
	speeds  map[float64][]float64
}

// turn is a job and what its next step is worth.
type turn struct {
	index, rank int
	priority    int32
	worth       float64
	// resized tells that the job has taken a step, so that another costs no resize.
	resized bool
}

// newLine puts those of the jobs at the indices in line who can take a step.
func newLine(jobs []Job, indices []int, price float64, yields bool) *line {
	l := &line{jobs: jobs, yields: yields, price: price, speeds: map[float64][]float64{}}
	ranked := slices.SortedFunc(slices.Values(indices), func(a, b int) int { return jobs[a].compare(&jobs[b]) })
	for rank, index := range ranked {
		if l.able(index) {
			l.waiting = append(l.waiting, turn{index: index, rank: rank, priority: jobs[index].Priority, worth: l.worth(index)})
		}
	}
	heap.Init(l)
	return l
}

// able reports whether the job can take another step.
func (l *line) able(index int) bool {
	if l.yields {
		return l.jobs[index].Size > l.jobs[index].Min
	}
	return l.jobs[index].Size < l.jobs[index].Max
}

// worth is what the next replica would do, or what the last one does.
func (l *line) worth(index int) float64 {
	job := &l.jobs[index]
	if l.yields {
		return l.speed(job, job.Size) - l.speed(job, job.Size-1)
	}
	return l.speed(job, job.Size+1) - l.speed(job, job.Size)
}

// remembered bounds for which sizes speeds are kept.
const remembered = 1 << 14

// speed is that of the job, of which each is computed once.
func (l *line) speed(job *Job, size int32) float64 {
	if size >= remembered {
		return job.speed(size)
	}
	known := l.speeds[job.Exponent]
	for n := int32(len(known)); n <= size; n++ {
		known = append(known, job.speed(n))
	}
	l.speeds[job.Exponent] = known
	return known[size]
}

// stepped follows a step of the first.
func (l *line) stepped() {
	first := &l.waiting[0]
	if !l.able(first.index) {
		heap.Pop(l)
		return
	}
	first.worth, first.resized = l.worth(first.index), true
	if !l.goesOn() {
		heap.Fix(l, 0)
	}
}

// goesOn reports whether the first takes the next step, too: the other who would is not
// better by the cost of his resize.
func (l *line) goesOn() bool {
	if len(l.waiting) < 2 {
		return true
	}
	other := l.waiting[1]
	if len(l.waiting) > 2 && l.before(&l.waiting[2], &other) {
		other = l.waiting[2]
	}
	if job := &l.jobs[other.index]; !other.resized && l.yields {
		other.worth += l.price * l.speed(job, job.Size)
	} else if !other.resized {
		other.worth -= l.price * l.speed(job, job.Size)
	}
	return !l.before(&other, &l.waiting[0])
}

// Len is part of heap.Interface, as are the others.
func (l *line) Len() int           { return len(l.waiting) }
func (l *line) Less(i, j int) bool { return l.before(&l.waiting[i], &l.waiting[j]) }

// before reports whether it is a's turn before b's.
func (l *line) before(a, b *turn) bool {
	if l.yields {
		a, b = b, a
	}
	switch {
	case a.priority != b.priority:
		return a.priority > b.priority
	case a.worth != b.worth:
		return a.worth > b.worth
	}
	return a.rank < b.rank
}
func (l *line) Swap(i, j int) { l.waiting[i], l.waiting[j] = l.waiting[j], l.waiting[i] }
func (l *line) Push(x any)    { l.waiting = append(l.waiting, x.(turn)) }
func (l *line) Pop() any {
	last := len(l.waiting) - 1
	out := l.waiting[last]
	l.waiting = l.waiting[:last]
	return out
}
