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
func (s *stepQueue) canStep(index int) bool {
	if s.yields {
		return s.sizes[index] > s.jobs[index].Min
	}
	return s.sizes[index] < s.jobs[index].Max
}

// worth returns the speed gained by the next replica, or lost with the last one.
func (s *stepQueue) worth(index int) float64 {
	job, size := &s.jobs[index], s.sizes[index]
	if s.yields {
		return job.speed(size) - job.speed(size-1)
	}
	return job.speed(size+1) - job.speed(size)
}

// step takes the step of the first job, and returns its index.
func (s *stepQueue) step() (index int) {
	index = s.waiting[0].index
	if s.yields {
		s.sizes[index]--
	} else {
		s.sizes[index]++
	}
	s.stepped()
	return index
}

// stepped updates the queue after a step of the first job.
func (s *stepQueue) stepped() {
	first := &s.waiting[0]
	if !s.canStep(first.index) {
		heap.Pop(s)
		return
	}
	first.worth, first.resized = s.worth(first.index), true
	if !s.continues() {
		heap.Fix(s, 0)
	}
}

// continues reports whether the first job also takes the next step: no other is better by more than the cost of its
// resize.
func (s *stepQueue) continues() bool {
	if len(s.waiting) < 2 {
		return true
	}
	other := s.waiting[1]
	if len(s.waiting) > 2 && s.before(&s.waiting[2], &other) {
		other = s.waiting[2]
	}
	if job, size := &s.jobs[other.index], s.sizes[other.index]; !other.resized && s.yields {
		other.worth += s.price * job.speed(size)
	} else if !other.resized {
		other.worth -= s.price * job.speed(size)
	}
	return !s.before(&other, &s.waiting[0])
}

// Len, Less, Swap, Push and Pop implement heap.Interface.
func (s *stepQueue) Len() int           { return len(s.waiting) }
func (s *stepQueue) Less(i, j int) bool { return s.before(&s.waiting[i], &s.waiting[j]) }

// before reports whether a comes before b.
func (s *stepQueue) before(a, b *turn) bool {
	if s.yields {
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
func (s *stepQueue) Swap(i, j int) { s.waiting[i], s.waiting[j] = s.waiting[j], s.waiting[i] }
func (s *stepQueue) Push(x any)    { s.waiting = append(s.waiting, x.(turn)) }
func (s *stepQueue) Pop() any {
	last := len(s.waiting) - 1
	out := s.waiting[last]
	s.waiting = s.waiting[:last]
	return out
}
