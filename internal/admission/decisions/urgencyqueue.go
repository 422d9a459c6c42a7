package decisions

import (
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/engine/order"
)

// oldestEvery: every so many times the oldest item is taken instead of the most urgent one, so that a steady stream of
// urgent Workloads does not starve the others, which have their quota already.
const oldestEvery = 4

// urgencyQueue orders Workloads by when decisions about them are to be written: by urgency, then first in, first out,
// and every oldestEvery times the oldest. It is the storage of a workqueue, which locks it and never adds a Workload
// that it already has.
type urgencyQueue struct {
	urgency func(engine.Key) int32
	waiting order.Heap[*urgencyItem]
	at      map[engine.Key]*urgencyItem
	// arrived has the waiting items in the order of arrival, and possibly some that were taken already.
	arrived     []*urgencyItem
	came, taken int
}

// urgencyItem is a waiting Workload; turn is its position in the order of arrival.
type urgencyItem struct {
	key     engine.Key
	urgency int32
	turn    int
	place   order.Place // in the heap
}

// newUrgencyQueue returns a queue that calls urgency for a Workload when it is pushed or touched.
func newUrgencyQueue(urgency func(engine.Key) int32) *urgencyQueue {
	return &urgencyQueue{urgency: urgency, at: map[engine.Key]*urgencyItem{},
		waiting: order.NewHeap((*urgencyItem).before, func(u *urgencyItem) *order.Place { return &u.place })}
}

// Push adds a Workload.
func (uq *urgencyQueue) Push(key engine.Key) {
	uq.came++
	u := &urgencyItem{key: key, urgency: uq.urgency(key), turn: uq.came}
	uq.at[key] = u
	uq.arrived = append(uq.arrived, u)
	uq.waiting.Put(u)
}

// Touch updates the urgency of a waiting Workload.
func (uq *urgencyQueue) Touch(key engine.Key) {
	u := uq.at[key]
	u.urgency = uq.urgency(key)
	uq.waiting.Put(u)
}

// Len returns the number of waiting Workloads.
func (uq *urgencyQueue) Len() int { return uq.waiting.Len() }

// Pop removes and returns the next Workload.
func (uq *urgencyQueue) Pop() engine.Key {
	first := 0
	for uq.at[uq.arrived[first].key] != uq.arrived[first] {
		first++
	}
	uq.arrived = uq.arrived[first:]
	u := uq.waiting.First()
	if uq.taken++; uq.taken%oldestEvery == 0 {
		u = uq.arrived[0]
	}
	uq.waiting.Remove(u)
	delete(uq.at, u.key)
	return u.key
}

// before reports whether the decision about u is to be written before the decision about other.
func (u *urgencyItem) before(other *urgencyItem) bool {
	if u.urgency != other.urgency {
		return u.urgency > other.urgency
	}
	return u.turn < other.turn
}
