package waiting

import (
	"slices"

	"github.com/musterhq/muster/internal/engine/order"
	"github.com/musterhq/muster/internal/engine/preempt"
	"github.com/musterhq/muster/internal/engine/quota"
)

// Strategy is how a ClusterQueue proceeds when its head does not fit.
type Strategy int

const (
	// BestEffort admits later workloads that fit.
	BestEffort Strategy = iota
	// Strict admits no workload before the head.
	Strict
)

// Rules are the parts of a ClusterQueue on which waiting depends.
type Rules struct {
	Strategy Strategy
	// ByUsage orders the classes by the standing of their LocalQueues first.
	ByUsage bool
	// Backfill evaluates the classes that come after a planned start with the shortest first.
	Backfill bool
	// Preemption says whom the workloads of the queue may evict.
	Preemption preempt.Policy
	// FewerNodes is set if workloads may fit once nodes are taken away: where nodes are added on demand, a workload that
	// no present node can hold is admitted.
	FewerNodes bool
}

// Queue is what the room knows of a ClusterQueue: its classes, in order.
type Queue struct {
	Rules
	// Node is the queue in the tree of quotas, nil if it has none.
	Node *quota.Node

	room   *Room
	family *Family
	ready  order.Heap[*Class]
	// blocked are the blocked classes by priority: what can be evicted matters only to those of a higher one.
	blocked map[int32]map[*Class]struct{}
	// head blocks a strict queue.
	head *Class
	// byUse are the blocked classes that may fit once more is used, byGrowth those that wait for workloads to grow.
	// growersCheckedAt is the state in which it was last checked whether these are still to grow.
	byUse, byGrowth  map[*Class]struct{}
	growersCheckedAt State
	backfill         backfill
}

// NewQueue returns a queue without classes that is in no family.
func (r *Room) NewQueue() *Queue {
	return &Queue{room: r, ready: order.NewHeap((*Class).Before, func(c *Class) *order.Place { return &c.at }),
		blocked: map[int32]map[*Class]struct{}{}, byUse: map[*Class]struct{}{}, byGrowth: map[*Class]struct{}{},
		backfill: newBackfill()}
}

// Adopt sets the queue of a new class.
func (q *Queue) Adopt(c *Class) { c.queue = q }

// Ready returns the number of classes to evaluate, First the first of them, and All all of them in no particular order.
func (q *Queue) Ready() int { return q.ready.Len() }

// First returns the first class to evaluate, nil if there is none.
func (q *Queue) First() *Class {
	if q.ready.Len() == 0 {
		return nil
	}
	if first := q.ready.First(); !q.Backfill || !q.family.isPassing(first) {
		return first
	}
	return q.backfill.shortest.First()
}

// All returns the classes to evaluate in no particular order. The slice must be neither modified nor retained.
func (q *Queue) All() []*Class { return q.ready.All() }

// Front returns the first in order of the classes that wait in a strict queue, nil if there is none.
func (q *Queue) Front() *Class {
	if q.head != nil {
		return q.head
	}
	return q.First()
}

// Move lets change the order of some ready classes. Only these move: to sort all classes of a queue would take longer
// than anything else where a queue has thousands.
func Move(ready []*Class, change func()) {
	for _, c := range ready {
		c.queue.unlist(c)
	}
	change()
	for _, c := range ready {
		c.queue.list(c)
	}
}

// Rearrange sorts the classes again after their order may have changed.
func (q *Queue) Rearrange() {
	q.ready.Rearrange()
	q.rearrangeBackfill()
	q.Reordered()
}

// Reordered makes the head of a strict queue ready if others may come before it now, after the order of classes has
// changed.
func (q *Queue) Reordered() {
	if q.head != nil && q.ready.Len() > 0 && q.ready.First().Before(q.head) {
		q.head.MakeReady()
	}
}

// enqueue queues the class for evaluation, and updates its position if its head has changed.
func (q *Queue) enqueue(c *Class) {
	if c.workloads.Len() == 0 {
		q.unlist(c)
		return
	}
	q.list(c)
	q.touch()
}

// list lists the class among the ready ones, unlist removes it there.
func (q *Queue) list(c *Class) {
	q.ready.Put(c)
	if q.Backfill {
		q.backfill.shortest.Put(c)
	}
}

func (q *Queue) unlist(c *Class) {
	q.ready.Remove(c)
	q.backfill.shortest.Remove(c)
}

func (q *Queue) touch() {
	if q.family != nil {
		q.family.touch()
	}
}

// Charged publishes that workloads of the queue use the amounts now, or that one of them, the holder, may be evicted
// now; nil if none may. It concerns the classes that may be able to preempt: in the queue, those that can evict the
// holder; in the rest of the family, those that can reclaim what the queue borrows.
func (q *Queue) Charged(amounts quota.Vector, holder *preempt.Holder) {
	if q.family == nil {
		return
	}
	q.reevaluateReclaimers(amounts, false)
	if within := q.Preemption.WithinQueue; holder != nil && within != preempt.Never {
		q.reevaluateFrom(holder.Priority, within != preempt.LowerPriority)
	}
}

// Shrinkable publishes that a workload of the queue may shrink now, which it does for equal and higher priorities
// whatever the queue's rules.
func (q *Queue) Shrinkable(holder *preempt.Holder) { q.reevaluateFrom(holder.Priority, true) }

// reevaluateFrom makes the blocked classes of higher priorities ready, and of this priority if equal is set.
func (q *Queue) reevaluateFrom(least int32, equal bool) {
	for priority, classes := range q.blocked {
		if priority > least || priority == least && equal {
			for c := range classes {
				c.Reevaluate()
			}
		}
	}
}

// HeldBack publishes that more of the amounts is held back for a workload of the queue. Other classes of the queue may
// use that. To others it counts as usage of the queue.
func (q *Queue) HeldBack(amounts quota.Vector) {
	for _, a := range amounts {
		for c := range q.family.short[a.Index] {
			if c.queue == q {
				c.Reevaluate()
			}
		}
	}
	q.reevaluateReclaimers(amounts, true)
}

// GrowthChanged publishes that a workload of the queue that may grow has changed.
func (q *Queue) GrowthChanged() {
	for c := range q.byGrowth {
		c.Reevaluate()
	}
}

// reevaluateReclaimers makes the classes of other queues ready that may be able to reclaim, as the usage of the queue
// has grown by any of the amounts, or is about to grow by them. If the queue or a cohort above it exceeds its quota of
// anything that a class is short of, all that borrows below that node can be reclaimed. Example: with a quota of 4 in
// cohort A, queue p of A borrows all of it, and cannot be evicted for a queue of another cohort; once queue r of A uses
// 1 of its own quota, A exceeds 4, and p can be.
func (q *Queue) reevaluateReclaimers(amounts quota.Vector, soon bool) {
	over, known := []quota.Index(nil), false
	for _, a := range amounts {
		if len(q.family.short[a.Index]) == 0 {
			continue
		}
		if !known {
			over, known = q.exceeded(amounts, soon), true
		}
		for c := range q.family.short[a.Index] {
			if c.queue != q && c.queue.Preemption.Allows() &&
				slices.ContainsFunc(c.cause.Quota, func(i quota.Index) bool { return slices.Contains(over, i) }) {
				c.Reevaluate()
			}
		}
	}
}

// exceeded returns of what blocked classes are short that the queue, or a cohort above it, exceeds, or would exceed
// with the amounts.
func (q *Queue) exceeded(amounts quota.Vector, soon bool) (over []quota.Index) {
	for i, classes := range q.family.short {
		var more int64
		if soon {
			more = amounts.Of(i)
		}
		if len(classes) > 0 && q.exceeds(i, more) {
			over = append(over, i)
		}
	}
	return over
}

// exceeds reports whether the queue, or a cohort above it that is not the root, would exceed its quota with that much
// more.
func (q *Queue) exceeds(i quota.Index, more int64) bool {
	for n := q.Node; n.Parent() != nil; n = n.Parent() {
		if n.Over(quota.Planned, i, more) > 0 {
			return true
		}
	}
	return false
}
