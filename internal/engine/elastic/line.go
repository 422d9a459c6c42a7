package elastic

import (
	"container/heap"
	"slices"
)

// line is those of some jobs who want more, or who can give back, whose turn it is first:
// by priority, by what the replica is worth, and by how they stand in the queue.
type line struct {
	jobs []Job
	// sizes are what the jobs have come to, step by step.
	sizes []int32
	// yields has those first who lose least, and of equal ones who stands last.
	yields bool
	// price is the share of his speed that a job loses who is resized.
	price   float64
	waiting []turn
}

// turn is a job and what its next step is worth.
type turn struct {
	index, rank int
	priority    int32
	worth       float64
	// resized tells that the job has taken a step, so that another costs no resize.
	resized bool
}

// newLine puts those of the jobs at the indices in line who can take a step from those sizes.
func newLine(jobs []Job, sizes []int32, indices []int, price float64, yields bool) *line {
	l := &line{jobs: jobs, sizes: sizes, yields: yields, price: price, waiting: make([]turn, 0, len(indices))}
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
		return l.sizes[index] > l.jobs[index].Min
	}
	return l.sizes[index] < l.jobs[index].Max
}

// worth is what the next replica would do, or what the last one does.
func (l *line) worth(index int) float64 {
	job, size := &l.jobs[index], l.sizes[index]
	if l.yields {
		return job.speed(size) - job.speed(size-1)
	}
	return job.speed(size+1) - job.speed(size)
}

// step has the first take its step, and tells who that was.
func (l *line) step() (index int) {
	index = l.waiting[0].index
	if l.yields {
		l.sizes[index]--
	} else {
		l.sizes[index]++
	}
	l.stepped()
	return index
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
	if job, size := &l.jobs[other.index], l.sizes[other.index]; !other.resized && l.yields {
		other.worth += l.price * job.speed(size)
	} else if !other.resized {
		other.worth -= l.price * job.speed(size)
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
