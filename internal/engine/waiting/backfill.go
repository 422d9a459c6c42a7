package waiting

import (
	"cmp"
	"iter"

	"github.com/musterhq/muster/internal/engine/order"
)

// In a queue that plans starts, the first classes in order that do not fit have a planned start. The classes after them
// pass if they delay none of these starts, those that usually end first before the others of their priority.

// backfill is what a queue that plans starts keeps of its classes.
type backfill struct {
	// shortest are the ready classes, those of the highest priority first, and of these the shortest.
	shortest order.Heap[*Class]
	// lacking are the blocked classes that wait for others to end, in order.
	lacking order.Heap[*Class]
	// behind are the blocked classes that would delay a planned start.
	behind map[*Class]struct{}
}

func newBackfill() backfill {
	return backfill{
		shortest: order.NewHeap((*Class).isShorter, func(c *Class) *order.Place { return &c.atShortest }),
		lacking:  order.NewHeap((*Class).Before, func(c *Class) *order.Place { return &c.atLacking }),
		behind:   map[*Class]struct{}{},
	}
}

// isShorter reports whether the class goes first of two that come after a planned start.
func (c *Class) isShorter(other *Class) bool {
	if c.queue.ByUsage && c.From.Standing != other.From.Standing {
		return c.From.Standing < other.From.Standing
	}
	if by := cmp.Or(cmp.Compare(other.Priority, c.Priority), cmp.Compare(c.Usual, other.Usual)); by != 0 {
		return by < 0
	}
	return c.workloads.Before(&other.workloads)
}

// setAside lists a class that was just blocked, takeBack removes it there.
func (q *Queue) setAside(c *Class) {
	if c.cause.Behind {
		q.backfill.behind[c] = struct{}{}
	} else if c.cause.Lacks && q.Backfill {
		q.backfill.lacking.Put(c)
	}
}

func (q *Queue) takeBack(c *Class) {
	delete(q.backfill.behind, c)
	q.backfill.lacking.Remove(c)
}

// rearrangeBackfill lists the ready classes as the rules of the queue say now.
func (q *Queue) rearrangeBackfill() {
	for _, c := range q.ready.All() {
		if q.Backfill {
			q.backfill.shortest.Put(c)
		} else {
			q.backfill.shortest.Remove(c)
		}
	}
	q.backfill.shortest.Rearrange()
	q.backfill.lacking.Rearrange()
}

// Lacking yields the blocked classes that wait for others to end, in order. There are some only in a queue that plans
// starts.
func (q *Queue) Lacking() iter.Seq[*Class] { return q.backfill.lacking.Sorted }

// reserved is what the room knows of the planned starts of a family.
type reserved struct {
	// full is set if there are as many as may be; last is then the rank of the last of these workloads.
	full bool
	last order.Rank
	// moves counts the changes that may let others pass.
	moves int
}

// Reserve says whether there are as many planned starts as may be, and the rank of the workload of the last one. The
// classes after it are evaluated with the shortest first.
func (f *Family) Reserve(full bool, last order.Rank) { f.reserved.full, f.reserved.last = full, last }

// isPassing reports whether the class comes after all planned starts. The family may be nil.
func (f *Family) isPassing(c *Class) bool {
	return f != nil && f.reserved.full && order.Compare(f.reserved.last, c.Head()) < 0
}

// ReservationsMoved publishes that a planned start has changed: others may pass now.
func (f *Family) ReservationsMoved() {
	f.reserved.moves++
	for _, q := range f.queues {
		for c := range q.backfill.behind {
			c.Reevaluate()
		}
	}
}

// ReservationMoves counts the changes of planned starts.
func (f *Family) ReservationMoves() int { return f.reserved.moves }
