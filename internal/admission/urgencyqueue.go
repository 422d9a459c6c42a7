package admission

import (
	"container/heap"

	"github.com/musterhq/muster/internal/engine"
)

// oldestEach is how often who waits longest is taken in place of who is most urgent: a queue's Workloads, whose quota is
// theirs by then, do not wait for the urgent ones of others for as long as these come.
const oldestEach = 4

// urgencyQueue keeps Workloads in the order in which decisions about them are to be written: the most urgent first, those
// that are as urgent in the order in which they came, and now and then who came first of all. It is the storage of a workqueue,
// which guards it and gives it each Workload once at a time.
type urgencyQueue struct {
	urgency func(engine.Key) int32
	waiting urgencyHeap
	at      map[engine.Key]*urgent
	// arrived are those that wait in the order in which they came, and some that were taken since.
	arrived     []*urgent
	came, taken int
}

// urgent is a Workload that waits; turn says when it came.
type urgent struct {
	key     engine.Key
	urgency int32
	turn    int
	index   int // in the heap
}

// newUrgencyQueue gives a queue that asks for the urgency of whoever is added, once more if it is added again.
func newUrgencyQueue(urgency func(engine.Key) int32) *urgencyQueue {
	return &urgencyQueue{urgency: urgency, at: map[engine.Key]*urgent{}}
}

// Push adds a Workload.
func (q *urgencyQueue) Push(key engine.Key) {
	q.came++
	u := &urgent{key: key, urgency: q.urgency(key), turn: q.came}
	q.at[key] = u
	q.arrived = append(q.arrived, u)
	heap.Push(&q.waiting, u)
}

// Touch looks anew how urgent a Workload is that waits.
func (q *urgencyQueue) Touch(key engine.Key) {
	u := q.at[key]
	u.urgency = q.urgency(key)
	heap.Fix(&q.waiting, u.index)
}

// Len is how many wait.
func (q *urgencyQueue) Len() int { return len(q.waiting) }

// Pop takes the one that is next.
func (q *urgencyQueue) Pop() engine.Key {
	first := 0
	for q.at[q.arrived[first].key] != q.arrived[first] {
		first++
	}
	q.arrived = q.arrived[first:]
	next := 0
	if q.taken++; q.taken%oldestEach == 0 {
		next = q.arrived[0].index
	}
	u := heap.Remove(&q.waiting, next).(*urgent)
	delete(q.at, u.key)
	return u.key
}

type urgencyHeap []*urgent

func (h urgencyHeap) Len() int { return len(h) }

func (h urgencyHeap) Less(i, j int) bool {
	if h[i].urgency != h[j].urgency {
		return h[i].urgency > h[j].urgency
	}
	return h[i].turn < h[j].turn
}

func (h urgencyHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

func (h *urgencyHeap) Push(x any) {
	u := x.(*urgent)
	u.index = len(*h)
	*h = append(*h, u)
}

func (h *urgencyHeap) Pop() any {
	last := len(*h) - 1
	u := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return u
}
