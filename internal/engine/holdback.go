package engine

import (
	"cmp"
	"slices"

	"github.com/musterhq/muster/internal/engine/order"
	"github.com/musterhq/muster/internal/engine/preempt"
	"github.com/musterhq/muster/internal/engine/quota"
)

// A queue's own quota is not lent while a workload waits that would fit within it: otherwise borrowers would take each
// piece as soon as it is released, and a large workload would starve. So a queue holds quota back for one workload: the
// least that the first of those takes that would fit. During a pass, the part of this quota that is free is charged to
// the queue, where other queues see it. Two queues of 5 GPUs share a cohort:
//
//	queue a runs two jobs of 2 GPUs, queue b runs 6 and so borrows 1; large waits in a for 5
//	the first job of a ends: 2 GPUs are free, and a holds them back for large, so that b cannot borrow them
//	the second job of a ends: a holds back 4, and large waits for the GPU that b has borrowed
//	b releases 1 GPU: large starts
//
// Where there is not enough for all queues, the queue whose workload is first in order holds back first. A hold-back does
// not bind workloads that come before its workload and stay within their queue's own quota, nor running workloads of the
// same queue and a higher priority that grow (see growthsOf). Hold-backs follow from the waiting workloads only, not from
// the order in which these were evaluated: an engine that starts from a list decides like one that has been running.

// holdBacks charges hold-backs to the planned ledger, and releases them.
type holdBacks struct{ tree *quota.Tree }

// holdBack is own quota of a queue that is kept in a pass for the first of its waiting workloads that fits within it.
type holdBack struct {
	class *class
	rank  order.Rank
	needs quota.Vector
	// paid is set if the class was given what was held back.
	paid bool
}

// equal reports whether both hold back the same amounts for workloads at the same place in the order.
func (h holdBack) equal(other holdBack) bool {
	return (h.class == nil) == (other.class == nil) && order.Compare(h.rank, other.rank) == 0 && slices.Equal(h.needs, other.needs)
}

// holdBackOf returns what the queue is to hold back, without a class if it holds nothing back. A queue that may reclaim
// from any workload, or that shares with no other queue, need not.
func (cq *clusterQueue) holdBackOf() holdBack {
	if cq.entitled.Len() == 0 || len(cq.family.queues) == 1 || cq.Preemption.Reclaim == preempt.Any {
		return holdBack{}
	}
	first := cq.entitled.First()
	if cq.Strategy == Strict && &first.Class != cq.waits.Front() {
		return holdBack{}
	}
	return holdBack{class: first, rank: first.Head(), needs: first.own}
}

// removeEntitled takes the class off that list.
func (cq *clusterQueue) removeEntitled(c *class) {
	cq.entitled.Remove(c)
}

// updateHoldBacks unblocks the classes for which there is more because a hold-back has become smaller or later.
func (f *family) updateHoldBacks() {
	for _, q := range f.queues {
		q.updateHoldBack()
	}
}

func (cq *clusterQueue) updateHoldBack() {
	was := cq.published
	cq.published = cq.holdBackOf()
	if !was.equal(cq.published) {
		cq.family.waits.UsageChanged()
		if cq.fairly {
			cq.family.waits.SharesMoved() // shares include what is kept
		}
	}
	if cq.published.class != nil && (was.class == nil || !covers(was.needs, cq.published.needs) || order.Compare(was.rank, cq.published.rank) > 0) {
		cq.waits.HeldBack(cq.published.needs)
	}
	if was.class == nil || was.paid {
		return
	}
	later := cq.published.class == nil || order.Compare(was.rank, cq.published.rank) < 0
	if later || !covers(cq.published.needs, was.needs) {
		cq.released(was.needs.Indices())
	}
}

// markPaid notes that the class for which quota is held back was given at least as much.
func (cq *clusterQueue) markPaid(c *class, given quota.Vector) {
	cq.published.paid = cq.published.class == c && covers(given, cq.published.needs)
}

// covers reports whether a has at least the amounts of b.
func covers(a, b quota.Vector) bool {
	return !slices.ContainsFunc(b, func(x quota.Amount) bool { return a.Of(x.Index) < x.Value })
}

// chargeAll charges the hold-backs of the family's queues, the first in order first. releaseAll releases them.
func (h *holdBacks) chargeAll(f *family) {
	type holder struct {
		queue *clusterQueue
		rank  order.Rank
	}
	var holders []holder
	for _, q := range f.queues {
		if mine := q.holdBackOf(); mine.class != nil {
			holders = append(holders, holder{q, mine.rank})
		}
	}
	slices.SortFunc(holders, func(a, b holder) int {
		return cmp.Or(order.Compare(a.rank, b.rank), cmp.Compare(a.queue.Name, b.queue.Name))
	})
	for _, k := range holders {
		h.charge(k.queue)
	}
}

func (h *holdBacks) releaseAll(f *family) {
	for _, q := range f.queues {
		h.release(q)
	}
}

// charge charges the free part of what the queue is to hold back, in place of what it held back before. It reports
// whether other queues left it less than its own quota.
func (h *holdBacks) charge(q *clusterQueue) (cut bool) {
	h.release(q)
	mine := q.holdBackOf()
	if mine.class == nil {
		return false
	}
	var held quota.Vector // sorted by index, as the needs are
	for _, a := range mine.needs {
		own := min(a.Value, quota.Sub(q.node.Nominal(a.Index), q.node.Used(quota.Planned, a.Index)))
		free := q.node.Available(quota.Planned, a.Index)
		cut = cut || free < own
		if value := min(own, free); value > 0 {
			held = append(held, quota.Amount{Index: a.Index, Value: value})
		}
	}
	q.heldBack, q.heldBackFor = held, mine.rank
	h.tree.Charge(q.Name, quota.Planned, held)
	return cut
}

// release releases what the queue holds back.
func (h *holdBacks) release(q *clusterQueue) {
	h.tree.Release(q.Name, quota.Planned, q.heldBack)
	q.heldBack = nil
}
