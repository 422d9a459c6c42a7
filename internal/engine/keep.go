package engine

import (
	"cmp"
	"slices"

	"github.com/musterhq/muster/internal/engine/flavor"
	"github.com/musterhq/muster/internal/engine/order"
	"github.com/musterhq/muster/internal/engine/preempt"
	"github.com/musterhq/muster/internal/engine/quota"
)

// What is a queue's own is not lent while a workload waits that the queue's own quota
// could hold: else those who borrow would take each piece as it is given back, and a
// large workload would wait for ever. So each queue has a claim: what the first such
// workload takes at least. During a pass as much of the claims as is free is charged to
// the queues, for others to see.
//
// Where there is not enough for all claims, who is first in order keeps first. And a
// claim binds nobody who goes before it and takes what is his queue's own. Claims follow
// from who waits and from nothing else, not from who was looked at before: so an engine
// that starts from a list decides as one that was there all the time.

// claim is what a queue keeps for one of its workloads.
type claim struct {
	class *class
	rank  order.Rank
	needs quota.Vector
	// paid tells that the class was given it.
	paid bool
}

// equal reports whether both keep the same for as early a workload.
func (c claim) equal(other claim) bool {
	return (c.class == nil) == (other.class == nil) && order.Compare(c.rank, other.rank) == 0 && slices.Equal(c.needs, other.needs)
}

// claimOf is the claim of the queue, of no class if there is none. A queue that may
// reclaim from anyone needs no such help, nor does one that shares with nobody.
func (q *clusterQueue) claimOf() claim {
	if q.owners.Len() == 0 || len(q.family.queues) == 1 || q.Preemption.Reclaim == preempt.Any {
		return claim{}
	}
	first := q.owners.First()
	if q.Strategy == Strict && first != q.front() {
		return claim{}
	}
	return claim{class: first, rank: first.head(), needs: first.own}
}

// front is the first in order of those who wait in a strict queue.
func (q *clusterQueue) front() *class {
	switch {
	case q.head != nil:
		return q.head
	case q.ready.Len() > 0:
		return q.ready.First()
	}
	return nil
}

// formOf is what the class asks of its queue, whatever is in use.
func (e *Engine) formOf(c *class) *flavor.Form {
	if c.form == nil || c.formedOf != c.queue.revision {
		c.form, c.formedOf = flavor.NewForm(c.shape.podSets, e.offer(c.queue), &e.tree), c.queue.revision
		c.own = nil
		if c.queue.node != nil {
			c.own = c.form.Within(c.form.ReducedBy(c.form.Reducible()), c.queue.node.Nominal)
		}
	}
	return c.form
}

// claims has the class in line for the claim of its queue if it can have one.
func (e *Engine) claims(c *class) {
	q := c.queue
	e.formOf(c)
	if len(c.own) == 0 || c.waiting.Len() == 0 {
		q.waive(c)
		return
	}
	q.owners.Put(c)
}

// waive is the inverse.
func (q *clusterQueue) waive(c *class) {
	q.owners.Remove(c)
}

// followClaims has those looked at again for whom there is more because somebody claims
// less than before, or comes later.
func (f *family) followClaims() {
	for _, q := range f.queues {
		q.followClaim()
	}
}

func (q *clusterQueue) followClaim() {
	was := q.claimed
	q.claimed = q.claimOf()
	if !was.equal(q.claimed) {
		// Heads by resource may lack something else, and shares are compared with what is kept.
		q.family.charges++
		q.family.sharesMoved = q.family.sharesMoved || q.fairly
	}
	q.wakeBehind(was)
	if was.class == nil || was.paid {
		return
	}
	later := q.claimed.class == nil || order.Compare(was.rank, q.claimed.rank) < 0
	if later || !covers(q.claimed.needs, was.needs) {
		q.free(was.needs.Indices())
	}
}

// wakeBehind has the others of the queue looked at again where it claims more than before,
// or comes earlier: they see through what is kept for it and not for other queues now.
func (q *clusterQueue) wakeBehind(was claim) {
	if q.claimed.class == nil || was.class != nil && covers(was.needs, q.claimed.needs) && order.Compare(was.rank, q.claimed.rank) <= 0 {
		return
	}
	for _, a := range q.claimed.needs {
		for c := range q.family.short[a.Index] {
			if c.queue == q {
				q.unblock(c)
			}
		}
	}
}

// pay notes that the one that made the queue's claim was given at least as much.
func (q *clusterQueue) pay(c *class, given quota.Vector) {
	q.claimed.paid = q.claimed.class == c && covers(given, q.claimed.needs)
}

// covers reports whether the first vector has all of the second.
func covers(a, b quota.Vector) bool {
	return !slices.ContainsFunc(b, func(x quota.Amount) bool { return a.Of(x.Index) < x.Value })
}

// keepAll begins a pass over the family, and letAllGo ends it.
func (e *Engine) keepAll(f *family) {
	var keepers []*clusterQueue
	for _, q := range f.queues {
		if q.claimOf().class != nil {
			keepers = append(keepers, q)
		}
	}
	slices.SortFunc(keepers, func(a, b *clusterQueue) int {
		return cmp.Or(order.Compare(a.owners.First().head(), b.owners.First().head()), cmp.Compare(a.Name, b.Name))
	})
	for _, q := range keepers {
		e.keep(q)
	}
}

func (e *Engine) letAllGo(f *family) {
	for _, q := range f.queues {
		e.letGo(q)
	}
}

// keep charges what is free of the queue's claim, in place of what it kept before. It
// reports whether others left it less than is the queue's own.
func (e *Engine) keep(q *clusterQueue) (cut bool) {
	e.letGo(q)
	mine := q.claimOf()
	if mine.class == nil {
		return false
	}
	var kept quota.Vector // in the order of indices, as the claim is
	for _, a := range mine.needs {
		own := min(a.Value, quota.Sub(q.node.Nominal(a.Index), q.node.Used(quota.Planned, a.Index)))
		free := q.node.Available(quota.Planned, a.Index)
		cut = cut || free < own
		if value := min(own, free); value > 0 {
			kept = append(kept, quota.Amount{Index: a.Index, Value: value})
		}
	}
	q.kept, q.keptFor = kept, mine.rank
	e.tree.Charge(q.Name, quota.Planned, kept)
	return cut
}

// keepAfter keeps what is to be kept after the one was served.
func (e *Engine) keepAfter(c *contestant) {
	q := c.queue
	q.followClaim()
	cut := e.keep(q)
	if c.displaces || cut && slices.ContainsFunc(q.family.queues, func(other *clusterQueue) bool {
		return len(other.kept) > 0 && order.Compare(q.keptFor, other.keptFor) < 0
	}) {
		// What it took, or what its queue claims now, is kept for those who come after it.
		e.letAllGo(q.family)
		e.keepAll(q.family)
	}
}

// letGo takes back what the queue keeps.
func (e *Engine) letGo(q *clusterQueue) {
	e.tree.Release(q.Name, quota.Planned, q.kept)
	q.kept = nil
}

// seeingThrough evaluates the class as things are for it: nothing is kept from it by its
// own queue, nor, of its queue's own quota, by those who come after it.
func (e *Engine) seeingThrough(c *class) outcome {
	found := e.evaluateWithout(c, c.queue)
	if found.verdict != hopeless || len(c.own) == 0 {
		return found
	}
	later := []*clusterQueue{c.queue}
	for _, q := range c.queue.family.queues {
		if q != c.queue && len(q.kept) > 0 && order.Compare(c.head(), q.keptFor) < 0 {
			later = append(later, q)
		}
	}
	if len(later) == 1 {
		return found
	}
	if seen := e.evaluateWithout(c, later...); seen.verdict != hopeless && c.queue.holds(seen.choice.Usage) {
		seen.displaces = true
		return seen
	}
	return found
}

// evaluateWithout evaluates the class as if the queues kept nothing.
func (e *Engine) evaluateWithout(c *class, queues ...*clusterQueue) outcome {
	for _, q := range queues {
		e.tree.Release(q.Name, quota.Planned, q.kept)
	}
	defer func() {
		for _, q := range queues {
			e.tree.Charge(q.Name, quota.Planned, q.kept)
		}
	}()
	return e.evaluate(c)
}

// holds reports whether the queue's own quota has room for the amounts beside what is
// planned of it and not only kept.
func (q *clusterQueue) holds(v quota.Vector) bool {
	return !slices.ContainsFunc(v, func(a quota.Amount) bool {
		return q.node.Over(quota.Planned, a.Index, quota.Sub(a.Value, q.kept.Of(a.Index))) > 0
	})
}
