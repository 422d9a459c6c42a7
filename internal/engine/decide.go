package engine

import (
	"container/heap"
	"maps"
	"slices"
	"time"

	"github.com/musterhq/muster/internal/engine/order"
	"github.com/musterhq/muster/internal/engine/reason"
)

// Decide looks at what changed since the last call and returns what follows from
// it, in the order in which it was decided: as many workloads as fit are admitted,
// and those are told to go for whom others must. now is for what depends on time.
func (e *Engine) Decide(now time.Time) []Decision {
	if e.reshaped {
		e.reshape()
	}
	e.rerouteChanged()
	p := pass{Engine: e, now: now}
	for _, name := range slices.Sorted(maps.Keys(e.families)) {
		for f := e.families[name]; f.dirty; {
			f.dirty = false
			p.decide(f)
		}
	}
	e.sayWhy(&p)
	return p.decisions
}

// rerouteChanged has everyone find his place again whose queue or namespace is not
// what it was.
func (e *Engine) rerouteChanged() {
	if e.changed.Len() == 0 && e.moved.Len() == 0 {
		return
	}
	changed, moved := e.changed.Clone(), e.moved.Clone()
	e.changed.Clear()
	e.moved.Clear()
	for name := range changed {
		for _, c := range e.queue(name).classes {
			c.form = nil
		}
	}
	for name := range changed {
		for _, w := range e.waitingIn(e.queue(name)) {
			e.route(w)
		}
	}
	if moved.Len() == 0 {
		return
	}
	for _, w := range e.workloads {
		if w.held == nil && moved.Has(w.Key.Namespace) {
			e.route(w)
		}
	}
}

// waitingIn lists those who wait in the queue, in no order.
func (e *Engine) waitingIn(q *clusterQueue) []*workload {
	out := append(slices.Collect(maps.Values(q.aside)), e.promisees(q)...)
	for _, c := range q.classes {
		for _, r := range c.waiting.All() {
			out = append(out, e.workloads[r.Key])
		}
	}
	return out
}

// pass is one Decide under way.
type pass struct {
	*Engine
	now       time.Time
	decisions []Decision
}

// decide serves the queues of one family, always the first in order of all their
// heads, until nobody is left to look at.
func (p *pass) decide(f *family) {
	p.keepPromises(f)
	f.wakeFreed()
	var heads contest
	for _, q := range f.queues {
		p.enter(&heads, q)
	}
	for heads.Len() > 0 {
		c := heads[0]
		if c.version != f.version || c.class.at != 0 || c.class.head() != c.rank {
			heap.Pop(&heads) // what was found out about it may be wrong by now
			p.enter(&heads, c.queue)
			continue
		}
		p.serve(c)
		heap.Pop(&heads)
		p.enter(&heads, c.queue)
	}
	f.wakeFreed()
	f.dirty = slices.ContainsFunc(f.queues, func(q *clusterQueue) bool {
		return q.open() && p.mustWait(q).Code == reason.None
	})
}

// open reports whether there is somebody to look at, and nobody holds the queue back.
func (q *clusterQueue) open() bool {
	return q.head == nil && len(q.ready) > 0 && (q.Strategy != Strict || q.awaits == 0)
}

// contestant is the head of a queue and what was found out about it.
type contestant struct {
	queue   *clusterQueue
	class   *class
	rank    order.Rank
	version int
	outcome
}

// contest orders contestants: who borrows less goes first, then who is first in
// order.
type contest []*contestant

func (h contest) Len() int { return len(h) }
func (h contest) Less(i, j int) bool {
	if h[i].choice.Borrowing != h[j].choice.Borrowing {
		return h[i].choice.Borrowing < h[j].choice.Borrowing
	}
	return order.Compare(h[i].rank, h[j].rank) < 0
}
func (h contest) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *contest) Push(x any)   { *h = append(*h, x.(*contestant)) }
func (h *contest) Pop() any {
	last := len(*h) - 1
	c := (*h)[last]
	*h = (*h)[:last]
	return c
}

// enter puts the queue's first one that is not hopeless into the contest, and sets
// those aside that are.
func (p *pass) enter(heads *contest, q *clusterQueue) {
	for q.open() {
		if why := p.mustWait(q); why.Code != reason.None {
			p.tellReady(q, why)
			return
		}
		c := q.ready[0]
		found := p.evaluate(c)
		if found.verdict != hopeless {
			heap.Push(heads, &contestant{queue: q, class: c, rank: c.head(), version: q.family.version, outcome: found})
			return
		}
		heap.Pop(&q.ready)
		p.block(c, found.choice.Why, found.choice.Short)
		if q.Strategy == Strict {
			p.holdBack(q, c)
		}
	}
}

// mustWait says why the whole queue waits although there may be room.
func (e *Engine) mustWait(q *clusterQueue) reason.Reason {
	const message = "waiting for all admitted workloads to be in PodsReady condition"
	switch {
	case e.options.BlockUntilReady == BlockQueue && q.unready > 0, e.options.BlockUntilReady == BlockAll && e.unready > 0:
		return reason.Reason{Code: reason.WaitingForPodsReady, Detail: message}
	}
	return reason.Reason{}
}

// tellReady tells everyone who could be looked at why nobody is.
func (e *Engine) tellReady(q *clusterQueue, why reason.Reason) {
	for _, c := range q.ready {
		e.tellMute(c, why)
	}
}

// holdBack has nobody of a strict queue pass its head.
func (e *Engine) holdBack(q *clusterQueue, head *class) {
	q.head = head
	e.tellReady(q, behind(q))
}

// behind is why those wait who are not the head of a strict queue.
func behind(q *clusterQueue) reason.Reason {
	return reason.Reason{Code: reason.WaitingForQuota, Detail: "waits behind the head of ClusterQueue " + q.Name + ", which is StrictFIFO"}
}

// wakeFreed has those looked at again who were short of what was given back.
func (f *family) wakeFreed() {
	if len(f.freed) == 0 {
		return
	}
	for _, q := range f.queues {
		for _, c := range q.classes {
			if c.blocked && c.isShortOf(f.freed) {
				q.unblock(c)
			}
		}
	}
	f.freed = f.freed[:0]
}

// sayWhy adds the reasons that are news, in the order of names.
func (e *Engine) sayWhy(p *pass) {
	news := e.unsaid.UnsortedList()
	e.unsaid.Clear()
	slices.SortFunc(news, order.CompareKeys)
	for _, key := range news {
		if w := e.workloads[key]; w.why.Code != w.Told {
			p.decisions = append(p.decisions, Decision{Key: key, UID: w.UID, Generation: w.Generation, Why: w.why})
		}
	}
}
