package engine

import (
	"slices"

	"github.com/musterhq/muster/internal/engine/preempt"
	"github.com/musterhq/muster/internal/engine/quota"
)

// What is a queue's own is not lent while the first of its workloads waits for it: else
// those who borrow would take each piece as it is given back, and a large workload
// would wait for ever. So during a pass as much of the queue's own quota as is free is
// charged to the queue, for others to see; its own workloads see through it.

// owe notes that the class, which was just set aside, waits for quota of the queue's
// own, if it does. A queue that may reclaim from anyone needs no such help.
func (e *Engine) owe(c *class, needs quota.Vector) {
	q := c.queue
	own := !slices.ContainsFunc(needs, func(a quota.Amount) bool { return a.Value > q.node.Nominal(a.Index) })
	if len(needs) == 0 || !own || q.Preemption.Reclaim == preempt.Any || q.owed != nil && !c.before(q.owed) {
		return
	}
	q.owed, c.needs = c, needs
	e.keep(q)
	q.family.version++ // others may have less now
}

// keep charges what the queue keeps for the one that it owes to, in place of what it
// kept before.
func (e *Engine) keep(q *clusterQueue) {
	e.letGo(q)
	if q.owed == nil {
		return
	}
	var amounts []quota.Amount
	for _, a := range q.owed.needs {
		free := min(quota.Sub(q.node.Nominal(a.Index), q.node.Used(quota.Planned, a.Index)), q.node.Available(quota.Planned, a.Index))
		amounts = append(amounts, quota.Amount{Index: a.Index, Value: min(a.Value, max(0, free))})
	}
	q.kept = quota.VectorOf(amounts...)
	e.tree.Charge(q.Name, quota.Planned, q.kept)
}

// letGo takes back what the queue keeps.
func (e *Engine) letGo(q *clusterQueue) {
	e.tree.Release(q.Name, quota.Planned, q.kept)
	q.kept = nil
}

// keepAll begins a pass over the family, and letAllGo ends it.
func (e *Engine) keepAll(f *family) {
	for _, q := range f.queues {
		e.keep(q)
	}
}

func (e *Engine) letAllGo(f *family) {
	for _, q := range f.queues {
		e.letGo(q)
	}
}

// seeingThrough evaluates the class as its own queue sees it.
func (e *Engine) seeingThrough(c *class) outcome {
	kept := c.queue.kept
	e.tree.Release(c.queue.Name, quota.Planned, kept)
	defer e.tree.Charge(c.queue.Name, quota.Planned, kept)
	return e.evaluate(c)
}
