package state

import (
	"cmp"
	"slices"

	"github.com/musterhq/muster/internal/engine/model"
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
// Where there is not enough for all queues, the queue whose workload is first in order holds back first. A hold-back
// does not bind workloads that come before its workload and stay within their queue's own quota, nor running workloads
// of the same queue and a higher priority that grow (see growthsOf). Hold-backs follow from the waiting workloads only,
// not from the order in which these were evaluated: an engine that starts from a list decides like one that has been
// running.

// HoldBacks charges hold-backs to the planned ledger, and releases them.
type HoldBacks struct{ Tree *quota.Tree }

// HoldBack is own quota of a queue that is held back in a pass for the first of its waiting workloads that fits within
// it.
type HoldBack struct {
	Class *Class
	rank  order.Rank
	needs quota.Vector
	// paid is set if the class was given what was held back.
	paid bool
}

// equal reports whether both hold back the same amounts for workloads at the same place in the order.
func (h HoldBack) equal(other HoldBack) bool {
	return (h.Class == nil) == (other.Class == nil) && order.Compare(h.rank, other.rank) == 0 &&
		slices.Equal(h.needs, other.needs)
}

// HoldBackOf returns what the queue is to hold back, without a class if it holds nothing back. A queue that may reclaim
// from any workload, or that shares with no other queue, need not.
func (cq *ClusterQueue) HoldBackOf() HoldBack {
	if cq.Entitled.Len() == 0 || len(cq.Family.Queues) == 1 || cq.Preemption.Reclaim == preempt.Any {
		return HoldBack{}
	}
	first := cq.Entitled.First()
	if cq.Strategy == model.Strict && &first.Class != cq.Waits.Front() {
		return HoldBack{}
	}
	return HoldBack{Class: first, rank: first.Head(), needs: first.Own}
}

// RemoveEntitled takes the class off that list.
func (cq *ClusterQueue) RemoveEntitled(c *Class) {
	cq.Entitled.Remove(c)
}

// UpdateHoldBacks unblocks the classes for which there is more because a hold-back has become smaller or later.
func (f *Family) UpdateHoldBacks() {
	for _, q := range f.Queues {
		q.updateHoldBack()
	}
}

func (cq *ClusterQueue) updateHoldBack() {
	was := cq.Published
	cq.Published = cq.HoldBackOf()
	if !was.equal(cq.Published) {
		cq.Family.Waits.UsageChanged()
		if cq.Fairly {
			cq.Family.Waits.SharesMoved() // shares include what is kept
		}
	}
	if cq.Published.Class != nil &&
		(was.Class == nil || !covers(was.needs, cq.Published.needs) || order.Compare(was.rank, cq.Published.rank) > 0) {
		cq.Waits.HeldBack(cq.Published.needs)
	}
	if was.Class == nil || was.paid {
		return
	}
	later := cq.Published.Class == nil || order.Compare(was.rank, cq.Published.rank) < 0
	if later || !covers(cq.Published.needs, was.needs) {
		cq.Released(was.needs.Indices())
	}
}

// MarkPaid notes that the class for which quota is held back was given at least as much.
func (cq *ClusterQueue) MarkPaid(c *Class, given quota.Vector) {
	cq.Published.paid = cq.Published.Class == c && covers(given, cq.Published.needs)
}

// covers reports whether a has at least the amounts of b.
func covers(a, b quota.Vector) bool {
	return !slices.ContainsFunc(b, func(x quota.Amount) bool { return a.Of(x.Index) < x.Value })
}

// ChargeAll charges the hold-backs of the family's queues, the first in order first.
func (h *HoldBacks) ChargeAll(f *Family) {
	type holder struct {
		queue *ClusterQueue
		rank  order.Rank
	}
	var holders []holder
	for _, q := range f.Queues {
		if mine := q.HoldBackOf(); mine.Class != nil {
			holders = append(holders, holder{q, mine.rank})
		}
	}
	slices.SortFunc(holders, func(a, b holder) int {
		return cmp.Or(order.Compare(a.rank, b.rank), cmp.Compare(a.queue.Name, b.queue.Name))
	})
	for _, k := range holders {
		h.Charge(k.queue)
	}
}

// ReleaseAll releases the hold-backs of the family's queues.
func (h *HoldBacks) ReleaseAll(f *Family) {
	for _, q := range f.Queues {
		h.Release(q)
	}
}

// Charge charges the free part of what the queue is to hold back, in place of what it held back before. It reports
// whether other queues left it less than its own quota.
func (h *HoldBacks) Charge(q *ClusterQueue) (cut bool) {
	h.Release(q)
	mine := q.HoldBackOf()
	if mine.Class == nil {
		return false
	}
	var held quota.Vector // sorted by index, as the needs are
	for _, a := range mine.needs {
		own := min(a.Value, quota.Sub(q.Node.Nominal(a.Index), q.Node.Used(quota.Planned, a.Index)))
		free := q.Node.Available(quota.Planned, a.Index)
		cut = cut || free < own
		if value := min(own, free); value > 0 {
			held = append(held, quota.Amount{Index: a.Index, Value: value})
		}
	}
	q.HeldBack, q.HeldBackFor = held, mine.rank
	h.Tree.Charge(q.Name, quota.Planned, held)
	return cut
}

// Release releases what the queue holds back.
func (h *HoldBacks) Release(q *ClusterQueue) {
	h.Tree.Release(q.Name, quota.Planned, q.HeldBack)
	q.HeldBack = nil
}

// MayFitOwnQuota reports whether there may be flavors with which the fewest pods would be within FitsOwnQuota. Where a
// queue's own quota is in use, that spares a search, which would release and charge what all other queues hold back.
// short is what is in use.
func (c *Class) MayFitOwnQuota() (may bool, short []quota.Index) {
	return c.Form.EachMayFit(c.Form.ReducedBy(c.Form.Reducible()), c.Queue.withinOwnQuota)
}

// FitsOwnQuota reports whether the amounts fit within the queue's own quota, beside its planned usage without what
// it holds back.
func (cq *ClusterQueue) FitsOwnQuota(v quota.Vector) bool {
	return !slices.ContainsFunc(v, func(a quota.Amount) bool { return !cq.withinOwnQuota(a.Index, a.Value) })
}

func (cq *ClusterQueue) withinOwnQuota(i quota.Index, amount int64) bool {
	return cq.Node.Over(quota.Planned, i, quota.Sub(amount, cq.HeldBack.Of(i))) == 0
}

// ChargeAfter updates what is held back after the first of the queue was served. took says whether it was given what
// had been held back for others.
func (h *HoldBacks) ChargeAfter(q *ClusterQueue, took bool) {
	q.updateHoldBack()
	cut := h.Charge(q)
	if took || cut && slices.ContainsFunc(q.Family.Queues, func(other *ClusterQueue) bool {
		return len(other.HeldBack) > 0 && order.Compare(q.HeldBackFor, other.HeldBackFor) < 0
	}) {
		// What it took, or what its queue holds back now, had been held back for later workloads.
		h.ReleaseAll(q.Family)
		h.ChargeAll(q.Family)
	}
}
