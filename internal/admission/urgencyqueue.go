package admission

import (
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/engine/order"
)

// oldestEach is how often who waits longest is taken in place of who is most urgent: a queue's Workloads, whose quota is
// theirs by then, do not wait for the urgent ones of others for as long as these come.
const oldestEach = 4

// urgencyQueue keeps Workloads in the order in which decisions about them are to be written: the most urgent first, those
// that are as urgent in the order in which they came, and now and then who came first of all. It is the storage of a workqueue,
// which guards it and gives it each Workload once at a time.
type urgencyQueue struct {
	urgency func(engine.Key) int32
	waiting order.Heap[*urgent]
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
	place   order.Place // among those that wait
}

// newUrgencyQueue gives a queue that asks for the urgency of whoever is added, once more if it is added again.
func newUrgencyQueue(urgency func(engine.Key) int32) *urgencyQueue {
	return &urgencyQueue{urgency: urgency, at: map[engine.Key]*urgent{},
		waiting: order.NewHeap((*urgent).before, func(u *urgent) *order.Place { return &u.place })}
}

// Push adds a Workload.
func (q *urgencyQueue) Push(key engine.Key) {
	q.came++
	u := &urgent{key: key, urgency: q.urgency(key), turn: q.came}
	q.at[key] = u
	q.arrived = append(q.arrived, u)
	q.waiting.Put(u)
}

// Touch looks anew how urgent a Workload is that waits.
func (q *urgencyQueue) Touch(key engine.Key) {
	u := q.at[key]
	u.urgency = q.urgency(key)
	q.waiting.Put(u)
}

// Len is how many wait.
func (q *urgencyQueue) Len() int { return q.waiting.Len() }

// Pop takes the one that is next.
func (q *urgencyQueue) Pop() engine.Key {
	first := 0
	for q.at[q.arrived[first].key] != q.arrived[first] {
		first++
	}
	q.arrived = q.arrived[first:]
	u := q.waiting.First()
	if q.taken++; q.taken%oldestEach == 0 {
		u = q.arrived[0]
	}
	q.waiting.Remove(u)
	delete(q.at, u.key)
	return u.key
}

// before reports whether the decision about u is to be written before that about the other.
func (u *urgent) before(other *urgent) bool {
	if u.urgency != other.urgency {
		return u.urgency > other.urgency
	}
	return u.turn < other.turn
}
