package engine

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/musterhq/muster/internal/engine/order"
	"github.com/musterhq/muster/internal/engine/preempt"
	"github.com/musterhq/muster/internal/engine/reason"
)

// passBudget bounds the work of one pass, in workloads looked at, so that news never
// wait for long: a few milliseconds.
const passBudget = 250

// Decide looks at what changed since the last call and returns what follows from
// it, in the order in which it was decided: as many workloads as fit are admitted,
// and those are told to go for whom others must. now is for what depends on time.
//
// It ends early where there is much to look at: call it again while it is Busy. News
// may be applied in between.
func (e *Engine) Decide(now time.Time) []Decision {
	now = now.Round(0) // by the wall clock, as a log has it: else a replay might differ
	if e.reshaped {
		e.reshape()
	}
	e.now = now
	e.sample(now)
	e.tryRefused(now)
	e.forgetAvoidance(now)
	e.tryGrowth(now)
	p := pass{Engine: e, now: now, budget: passBudget}
	p.rerouteChanged()
	p.settleWithin()
	p.evictWithdrawn()
	p.repair()
	p.dropUnwanted()
	e.wakePlaces()
	if e.changed.Len() == 0 && e.relocated.Len() == 0 {
		p.workOff()
	}
	p.sayWhy()
	e.timeAvoidance(now)
	return p.decisions
}

// Busy reports whether the last Decide has left something to look at.
func (e *Engine) Busy() bool {
	return e.changed.Len() > 0 || e.relocated.Len() > 0 || len(e.agenda) > 0 || e.unsaid.len() > 0 || e.ailing.Len() > 0 || e.unwanted.Len() > 0
}

// pass is one Decide under way.
type pass struct {
	*Engine
	now       time.Time
	budget    int
	decisions []Decision
}

// decided adds a decision about the workload, so urgent.
func (p *pass) decided(w *workload, urgency int32, d Decision) {
	d.Key, d.UID, d.Generation, d.Urgency = w.Key, w.UID, w.Generation, urgency
	if d.Why.Code == reason.None {
		if !d.Withdraw {
			p.serial++
			w.serial = p.serial
		}
		d.Serial = w.serial
	}
	p.decisions = append(p.decisions, d)
}

// rerouteChanged has everyone find his place again whose queue is not what it was, as
// far as the budget goes: of ClusterQueues first, so that who comes from another one does so
// once.
func (p *pass) rerouteChanged() {
	for _, name := range sets.List(p.changed) {
		p.changed.Delete(name)
		q := p.queue(name)
		for w := q.unplaced.first(); w != nil; w = q.unplaced.first() {
			if p.budget <= 0 {
				p.changed.Insert(name)
				return
			}
			p.route(w)
			p.budget--
		}
	}
	for _, key := range slices.SortedFunc(maps.Keys(p.relocated), order.CompareKeys) {
		if !p.rerouteMembers(p.localQueues[key]) {
			return
		}
		p.relocated.Delete(key)
	}
}

// rerouteMembers does so for a LocalQueue. Who holds quota stays where he is. It reports
// whether nobody is left.
func (p *pass) rerouteMembers(l *localQueue) bool {
	for w := l.unplaced.first(); w != nil; w = l.unplaced.first() {
		if p.budget <= 0 {
			return false
		}
		p.budget--
		if w.held == nil {
			p.route(w)
			continue
		}
		l.settle(w)
		if w.listedIn != nil && w.queue.family != nil { // it may grow now, or may not any more
			p.settle(w)
			w.queue.family.put()
		}
	}
	l.left = nil
	return true
}

// workOff serves the families on the agenda, in the order of names, as far as the
// budget goes. Where an admission anywhere has all others wait, who is first in order
// goes first, of whatever family.
func (p *pass) workOff() {
	todo := slices.DeleteFunc(p.agenda, func(f *family) bool { return p.families[f.name] != f }) // those are no more
	p.agenda = nil
	slices.SortFunc(todo, func(a, b *family) int { return cmp.Compare(a.name, b.name) })
	if p.options.BlockUntilReady == BlockAll {
		p.byFirst(todo)
	}
	for _, f := range todo {
		left := true
		for left && p.budget > 0 {
			left = p.decide(f)
		}
		f.dirty = false
		if left {
			f.put()
		}
	}
}

// byFirst puts those families first that have the first in order who is not hopeless, or whose
// room that was promised is there, and last those that have nobody. It sets those aside who are.
func (p *pass) byFirst(families []*family) {
	firsts := map[*family]order.Rank{}
	goes := func(f *family, r order.Rank) {
		if first, ok := firsts[f]; !ok || order.Compare(r, first) < 0 {
			firsts[f] = r
		}
	}
	for _, f := range families {
		for _, r := range f.promised.All() {
			if w := p.workloads[r.Key]; fits(w.queue.node, w.promise.usage) {
				goes(f, r)
			}
		}
		f.followClaims()
		f.wakeFreed()
		p.keepAll(f)
		for _, q := range f.queues {
			if c := p.headOf(q); c != nil {
				goes(f, c.rank)
			}
		}
		p.letAllGo(f)
	}
	slices.SortStableFunc(families, func(a, b *family) int {
		first, ok := firsts[a]
		second, okToo := firsts[b]
		switch {
		case ok && okToo:
			return order.Compare(first, second)
		case ok:
			return -1
		case okToo:
			return 1
		default:
			return 0
		}
	})
}

// decide serves the queues of one family, always the first in order of all their
// heads, until nobody is left to look at or the budget is spent. It reports whether
// somebody is left.
func (p *pass) decide(f *family) (left bool) {
	p.breakUncovered(f)
	p.keepPromises(f)
	f.followClaims()
	f.wakeFreed()
	p.keepAll(f)
	heads := p.newContest()
	for _, q := range f.queues {
		if c := p.headOf(q); c != nil {
			heads.add(c)
		}
	}
	for c := heads.first(); c != nil && p.budget > 0; c = heads.first() {
		serve := !c.stale()
		if serve {
			p.letGo(c.queue)
			p.serve(c)
			p.keepAfter(c)
		}
		heads.replace(c, p.headOf(c.queue))
		if serve {
			for _, v := range c.victims {
				heads.recharged(p.queues[v.Queue.Name()])
			}
			for _, y := range c.yields {
				heads.recharged(y.w.queue)
			}
		}
	}
	p.letAllGo(f)
	f.followClaims()
	f.wakeFreed()
	p.wakePlaces()
	if p.isAwaited(f) || p.review(f) {
		return true
	}
	return p.grow(f) || len(f.freed) > 0 || p.isAwaited(f)
}

// isAwaited reports whether there is somebody in the family to look at.
func (e *Engine) isAwaited(f *family) bool {
	return e.canKeepPromise(f) || slices.ContainsFunc(f.queues, func(q *clusterQueue) bool {
		return e.open(q) && e.mustWait(q).Code == reason.None
	})
}

// open reports whether there is somebody to look at, and nobody holds the queue back: of
// a strict one its head does, and who was promised something, unless somebody goes
// before him.
func (e *Engine) open(q *clusterQueue) bool {
	if q.head != nil || q.ready.Len() == 0 {
		return false
	}
	c := q.ready.First()
	first := turn{c.from.standing, c.head()}
	return q.Strategy != Strict || !slices.ContainsFunc(q.promised.All(), func(r order.Rank) bool {
		return !first.before(turn{e.workloads[r.Key].local.standing, r}, q)
	})
}

// headOf is the queue's first one that is not hopeless, nil if there is none. It sets
// those aside that are.
func (p *pass) headOf(q *clusterQueue) *contestant {
	for p.open(q) {
		if why := p.mustWait(q); why.Code != reason.None {
			p.tellReady(q, why)
			return nil
		}
		c := q.ready.First()
		if head := p.headBefore(c); head != nil {
			p.budget--
			p.putBehind(c, head)
			continue
		}
		found := p.seeingThrough(c)
		if found.verdict != hopeless {
			return &contestant{queue: q, class: c, rank: c.head(), version: q.family.version, outcome: found}
		}
		p.budget--
		q.ready.Pop()
		p.block(c, found.choice.Why, found.choice.Short)
		if found.outgrown {
			c.outgrown = true
			q.outgrown++
		}
		p.wantPlaces(c, found.wants)
		switch q.Strategy {
		case Strict:
			p.holdBack(q, c)
		case ByResource:
			p.holdBackFor(q, c, found.lacks)
		}
	}
	return nil
}

// mustWait says why the whole queue waits although there may be room.
func (e *Engine) mustWait(q *clusterQueue) reason.Reason {
	switch {
	case e.options.BlockUntilReady == BlockQueue && q.unready > 0:
		return reason.Reason{Code: reason.WaitingForPodsReady, Detail: "waiting for all admitted workloads of ClusterQueue " + q.Name + " to be in PodsReady condition"}
	case e.options.BlockUntilReady == BlockAll && e.unready > 0:
		return reason.Reason{Code: reason.WaitingForPodsReady, Detail: "waiting for all admitted workloads to be in PodsReady condition"}
	}
	return reason.Reason{}
}

// tellReady tells everyone who could be looked at why nobody is, in the order in which
// they would be: that of the heap depends on how it came about.
func (e *Engine) tellReady(q *clusterQueue, why reason.Reason) {
	var mute []*class
	for _, c := range q.ready.All() {
		if len(c.mute) > 0 {
			mute = append(mute, c)
		}
	}
	slices.SortFunc(mute, func(a, b *class) int { return order.Compare(a.head(), b.head()) })
	for _, c := range mute {
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
	if q.Strategy == ByResource {
		return reason.Reason{Code: reason.WaitingForQuota, Detail: "waits behind an earlier workload of ClusterQueue " + q.Name + " that lacks some of the same resources"}
	}
	return reason.Reason{Code: reason.WaitingForQuota, Detail: "waits behind the head of ClusterQueue " + q.Name + ", which is StrictFIFO"}
}

// wakeFreed has those looked at again who were short of what was given back.
//
// By fair shares whoever uses more or less of anything may be evicted for others, or
// others for him.
func (f *family) wakeFreed() {
	for _, i := range f.freed {
		for c := range f.short[i] {
			c.queue.unblock(c)
		}
	}
	if f.sharesMoved {
		for _, q := range f.queues {
			if q.Preemption.Reclaim != preempt.Never {
				for _, c := range q.classes {
					if c.blocked {
						q.unblock(c)
					}
				}
			}
		}
	}
	f.freed, f.sharesMoved = nil, false
}

// sayWhy adds the reasons that are news, oldest first, as far as the budget goes.
func (p *pass) sayWhy() {
	for p.budget > 0 {
		key, ok := p.unsaid.take()
		if !ok {
			return
		}
		if w := p.workloads[key]; w.why.Code != w.Told || w.blamesAnother(w.why) {
			p.budget--
			w.said = w.why.Message()
			p.decided(w, w.Priority, Decision{Why: w.why})
		}
	}
}

// newsList holds keys in the order in which they were added, each once. The zero value
// is empty and ready.
type newsList struct {
	keys    []Key
	present sets.Set[Key]
}

func (l *newsList) len() int { return l.present.Len() }

func (l *newsList) add(key Key) {
	if !l.present.Has(key) {
		if l.present == nil {
			l.present = sets.New[Key]()
		}
		l.present.Insert(key)
		l.keys = append(l.keys, key)
	}
}

func (l *newsList) drop(key Key) { l.present.Delete(key) }

// take removes and returns the oldest.
func (l *newsList) take() (Key, bool) {
	for len(l.keys) > 0 {
		key := l.keys[0]
		l.keys = l.keys[1:]
		if l.present.Has(key) {
			l.present.Delete(key)
			return key, true
		}
	}
	return Key{}, false
}
