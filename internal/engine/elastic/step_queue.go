package elastic

import (
	"container/heap"
	"slices"
)

// stepQueue orders the jobs that want or can give a replica: by priority, by the value of the replica, and by their
// position in the queue.
type stepQueue struct {
	jobs []Job
	// sizes are the sizes of the jobs after the steps so far.
	sizes []int32
	// yields reverses the order: the job that loses least comes first, and of equal ones the last in the queue.
	yields bool
	// price is the part of its speed that a resize costs a job.
	price   float64
	waiting []turn
}

// turn is a job with the value of its next step.
type turn struct {
	index, rank int
	priority    int32
	worth       float64
	// resized is set once the job has taken a step, so that another one costs no further resize.
	resized bool
}

// newStepQueue returns a queue of the jobs at the indices that can take a step from these sizes.
func newStepQueue(jobs []Job, sizes []int32, indices []int, price float64, yields bool) *stepQueue {
	l := &stepQueue{jobs: jobs, sizes: sizes, yields: yields, price: price, waiting: make([]turn, 0, len(indices))}
	ranked := slices.SortedFunc(slices.Values(indices), func(a, b int) int { return jobs[a].compare(&jobs[b]) })
	for rank, index := range ranked {
		if l.canStep(index) {
			l.waiting = append(l.waiting, turn{index: index, rank: rank, priority: jobs[index].Priority, worth: l.worth(index)})
		}
	}
	heap.Init(l)
	return l
}

// canStep reports whether the job can take another step.
func (l *stepQueue) canStep(index int) bool {
	if l.yields {
		return l.sizes[index] > l.jobs[index].Min
	}
	return l.sizes[index] < l.jobs[index].Max
}

// worth returns the speed gained by the next replica, or lost with the last one.
func (l *stepQueue) worth(index int) float64 {
	job, size := &l.jobs[index], l.sizes[index]
	if l.yields {
		return job.speed(size) - job.speed(size-1)
	}
	return job.speed(size+1) - job.speed(size)
}

// step takes the step of the first job, and returns its index.
func (l *stepQueue) step() (index int) {
	index = l.waiting[0].index
	if l.yields {
		l.sizes[index]--
	} else {
		l.sizes[index]++
	}
	l.stepped()
	return index
}

// stepped updates the queue after a step of the first job.
func (l *stepQueue) stepped() {
	first := &l.waiting[0]
	if !l.canStep(first.index) {
		heap.Pop(l)
		return
	}
	first.worth, first.resized = l.worth(first.index), true
	if !l.continues() {
		heap.Fix(l, 0)
	}
}

// continues reports whether the first job also takes the next step: no other is better by more than the cost of its
// resize.
func (l *stepQueue) continues() bool {
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

// Len, Less, Swap, Push and Pop implement heap.Interface.
func (l *stepQueue) Len() int           { return len(l.waiting) }
func (l *stepQueue) Less(i, j int) bool { return l.before(&l.waiting[i], &l.waiting[j]) }

// before reports whether a comes before b.
func (l *stepQueue) before(a, b *turn) bool {
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
func (l *stepQueue) Swap(i, j int) { l.waiting[i], l.waiting[j] = l.waiting[j], l.waiting[i] }
func (l *stepQueue) Push(x any)    { l.waiting = append(l.waiting, x.(turn)) }
func (l *stepQueue) Pop() any {
	last := len(l.waiting) - 1
	out := l.waiting[last]
	l.waiting = l.waiting[:last]
	return out
}
