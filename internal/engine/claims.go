package engine

import (
	"cmp"
	"slices"

	"github.com/musterhq/muster/internal/engine/flavor"
	"github.com/musterhq/muster/internal/engine/order"
	"github.com/musterhq/muster/internal/engine/preempt"
	"github.com/musterhq/muster/internal/engine/quota"
)

// A queue's own quota is not lent while a workload waits that would fit within it: otherwise borrowers would take
// each piece as soon as it is released, and a large workload would starve. So each queue has a claim: the least that
// its first such workload takes. During a pass, as much of the claims as is free is charged to their queues, where
// other queues see it.
//
// If there is not enough for all claims, the first in order is served first. And a claim does not bind workloads that
// come before it and stay within their queue's own quota, nor running ones of its own queue and a higher priority that
// grow (see growthsOf). Claims follow from the waiting workloads only, not from the order in which they were evaluated,
// so that an engine that starts from a list decides like one that has been running.

// holdBacks charges and releases the claims.
type holdBacks struct{ tree *quota.Tree }

// claim is the quota that a queue keeps for one of its workloads.
type claim struct {
	class *class
	rank  order.Rank
	needs quota.Vector
	// paid is set if the class was given its claim.
	paid bool
}

// equal reports whether both claims keep the same amounts for workloads at the same place in the order.
func (c claim) equal(other claim) bool {
	return (c.class == nil) == (other.class == nil) && order.Compare(c.rank, other.rank) == 0 && slices.Equal(c.needs, other.needs)
}

// claimOf returns the claim of the queue, without a class if there is none. A queue that may reclaim from any
// workload, or that shares with no other queue, needs none.
func (cq *clusterQueue) claimOf() claim {
	if cq.claimants.Len() == 0 || len(cq.family.queues) == 1 || cq.Preemption.Reclaim == preempt.Any {
		return claim{}
	}
	first := cq.claimants.First()
	if cq.Strategy == Strict && &first.Class != cq.waits.Front() {
		return claim{}
	}
	return claim{class: first, rank: first.Head(), needs: first.own}
}

// formOf returns the request of the class to its queue, independent of usage.
func (ev *evaluator) formOf(c *class) *flavor.Form {
	if c.form == nil || c.formedOf != c.queue.revision {
		c.form, c.formedOf = flavor.NewForm(c.shape.podSets, ev.offer(c.queue), ev.tree), c.queue.revision
		c.own = nil
		if c.queue.node != nil {
			c.own = c.form.Within(c.form.ReducedBy(c.form.Reducible()), c.queue.node.Nominal)
		}
	}
	return c.form
}

// addClaimant adds the class to the claimants of its queue if it fits within the queue's own quota.
func (ev *evaluator) addClaimant(c *class) {
	q := c.queue
	ev.formOf(c)
	if len(c.own) == 0 || c.Len() == 0 {
		q.removeClaimant(c)
		return
	}
	q.claimants.Put(c)
}

// removeClaimant reverses addClaimant.
func (cq *clusterQueue) removeClaimant(c *class) {
	cq.claimants.Remove(c)
}

// updateClaims unblocks the classes for which there is more because a claim has become smaller or later.
func (f *family) updateClaims() {
	for _, q := range f.queues {
		q.updateClaim()
	}
}

func (cq *clusterQueue) updateClaim() {
	was := cq.claimed
	cq.claimed = cq.claimOf()
	if !was.equal(cq.claimed) {
		cq.family.waits.UsageChanged()
		if cq.fairly {
			cq.family.waits.SharesMoved() // shares include what is kept
		}
	}
	if cq.claimed.class != nil && (was.class == nil || !covers(was.needs, cq.claimed.needs) || order.Compare(was.rank, cq.claimed.rank) > 0) {
		cq.waits.HeldBack(cq.claimed.needs)
	}
	if was.class == nil || was.paid {
		return
	}
	later := cq.claimed.class == nil || order.Compare(was.rank, cq.claimed.rank) < 0
	if later || !covers(cq.claimed.needs, was.needs) {
		cq.released(was.needs.Indices())
	}
}

// markPaid notes that the class that owns the claim was given at least as much.
func (cq *clusterQueue) markPaid(c *class, given quota.Vector) {
	cq.claimed.paid = cq.claimed.class == c && covers(given, cq.claimed.needs)
}

// covers reports whether a has at least the amounts of b.
func covers(a, b quota.Vector) bool {
	return !slices.ContainsFunc(b, func(x quota.Amount) bool { return a.Of(x.Index) < x.Value })
}

// keepAll charges the claims of the family at the beginning of a pass; releaseAllKept releases them at its end.
func (h *holdBacks) chargeAll(f *family) {
	type keeper struct {
		queue *clusterQueue
		rank  order.Rank
	}
	var keepers []keeper
	for _, q := range f.queues {
		if mine := q.claimOf(); mine.class != nil {
			keepers = append(keepers, keeper{q, mine.rank})
		}
	}
	slices.SortFunc(keepers, func(a, b keeper) int {
		return cmp.Or(order.Compare(a.rank, b.rank), cmp.Compare(a.queue.Name, b.queue.Name))
	})
	for _, k := range keepers {
		h.charge(k.queue)
	}
}

func (h *holdBacks) releaseAll(f *family) {
	for _, q := range f.queues {
		h.release(q)
	}
}

// keep charges the free part of the queue's claim, in place of what it kept before. It reports whether other queues
// left it less than its own quota.
func (h *holdBacks) charge(q *clusterQueue) (cut bool) {
	h.release(q)
	mine := q.claimOf()
	if mine.class == nil {
		return false
	}
	var kept quota.Vector // sorted by index, as the claim is
	for _, a := range mine.needs {
		own := min(a.Value, quota.Sub(q.node.Nominal(a.Index), q.node.Used(quota.Planned, a.Index)))
		free := q.node.Available(quota.Planned, a.Index)
		cut = cut || free < own
		if value := min(own, free); value > 0 {
			kept = append(kept, quota.Amount{Index: a.Index, Value: value})
		}
	}
	q.kept, q.keptFor = kept, mine.rank
	h.tree.Charge(q.Name, quota.Planned, kept)
	return cut
}

// keepAfter updates what is kept after a contestant was served.
func (h *holdBacks) chargeAfter(c *contestant) {
	q := c.queue
	q.updateClaim()
	cut := h.charge(q)
	if c.displaces || cut && slices.ContainsFunc(q.family.queues, func(other *clusterQueue) bool {
		return len(other.kept) > 0 && order.Compare(q.keptFor, other.keptFor) < 0
	}) {
		// What it took, or what its queue claims now, had been kept for later workloads.
		h.releaseAll(q.family)
		h.chargeAll(q.family)
	}
}

// releaseKept releases what the queue keeps.
func (h *holdBacks) release(q *clusterQueue) {
	h.tree.Release(q.Name, quota.Planned, q.kept)
	q.kept = nil
}

// evaluateIgnoringKept evaluates the class without what its own queue keeps and, within its queue's own quota,
// without what is kept for workloads after it.
func (ev *evaluator) evaluateIgnoringKept(c *class) outcome {
	found := ev.evaluateWithout(c, c.queue)
	if found.verdict != hopeless || len(c.own) == 0 || !c.mayFitOwnQuota() {
		return found
	}
	later := []*clusterQueue{c.queue}
	for _, q := range c.queue.family.queues {
		if q != c.queue && len(q.kept) > 0 && order.Compare(c.Head(), q.keptFor) < 0 {
			later = append(later, q)
		}
	}
	if len(later) == 1 {
		return found
	}
	if seen := ev.evaluateWithout(c, later...); seen.verdict != hopeless && c.queue.fitsOwnQuota(seen.choice.Usage) {
		seen.displaces = true
		return seen
	}
	return found
}

// evaluateWithout evaluates the class as if these queues kept nothing.
func (ev *evaluator) evaluateWithout(c *class, queues ...*clusterQueue) outcome {
	for _, q := range queues {
		ev.tree.Release(q.Name, quota.Planned, q.kept)
	}
	defer func() {
		for _, q := range queues {
			ev.tree.Charge(q.Name, quota.Planned, q.kept)
		}
	}()
	return ev.evaluate(c)
}

// fitsOwnQuota reports whether the amounts fit within the queue's own quota, beside its planned usage without what is
// kept.
func (cq *clusterQueue) fitsOwnQuota(v quota.Vector) bool {
	return !slices.ContainsFunc(v, func(a quota.Amount) bool { return !cq.withinOwnQuota(a.Index, a.Value) })
}

func (cq *clusterQueue) withinOwnQuota(i quota.Index, amount int64) bool {
	return cq.node.Over(quota.Planned, i, quota.Sub(amount, cq.kept.Of(i))) == 0
}

// mayFitOwnQuota reports whether there may be flavors with which the fewest pods would be within fitsOwnQuota. Where a
// queue's own quota is in use, that spares a search, which would release and charge what all other queues keep.
func (c *class) mayFitOwnQuota() bool {
	return c.form.EachMayFit(c.form.ReducedBy(c.form.Reducible()), c.queue.withinOwnQuota)
}
