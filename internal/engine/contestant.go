package engine

import (
	"slices"

	"github.com/musterhq/muster/internal/engine/contest"
	"github.com/musterhq/muster/internal/engine/order"
)

// contestant is the head of a queue with the outcome of its evaluation.
type contestant struct {
	contest.Contestant
	queue   *clusterQueue
	class   *class
	version int
	outcome
}

func newContestant(c *class, found outcome) *contestant {
	q := c.queue
	out := &contestant{queue: q, class: c, version: q.family.version, outcome: found}
	out.Contestant = contest.Contestant{Of: out, Queue: q.node, QueueRank: q.Preemption.Rank, Rank: c.Head(),
		Usage: found.choice.Usage, Borrowing: found.choice.Borrowing}
	return out
}

// contestant returns the head as the contest knows it, nil for none.
func (c *contestant) contestant() *contest.Contestant {
	if c == nil {
		return nil
	}
	return &c.Contestant
}

// stale reports whether the outcome may be out of date.
func (c *contestant) stale() bool {
	return c.version != c.queue.family.version || !c.class.IsFirst() || c.class.Head() != c.Rank
}

// chargeAfter updates what is held back after a contestant was served.
func (h *holdBacks) chargeAfter(c *contestant) {
	q := c.queue
	q.updateHoldBack()
	cut := h.charge(q)
	if c.takesHoldBacks || cut && slices.ContainsFunc(q.family.queues, func(other *clusterQueue) bool {
		return len(other.heldBack) > 0 && order.Compare(q.heldBackFor, other.heldBackFor) < 0
	}) {
		// What it took, or what its queue holds back now, had been held back for later workloads.
		h.releaseAll(q.family)
		h.chargeAll(q.family)
	}
}
