package engine

import (
	"slices"
	"time"

	"github.com/musterhq/muster/internal/engine/contest"
	"github.com/musterhq/muster/internal/engine/order"
	"github.com/musterhq/muster/internal/engine/reason"
)

// passBudget bounds the work of one pass, in workloads evaluated, so that events never wait longer than a few
// milliseconds.
const passBudget = 250

// Decide evaluates what changed since the last call and returns the resulting decisions in the order in which they
// were made: as many workloads as fit are admitted, and others are evicted where the rules of preemption call for it.
// Everything that depends on time uses now.
//
// It returns early if there is much to evaluate: call it again while Busy reports true. Events may be applied in
// between.
func (e *Engine) Decide(now time.Time) []Decision {
	now = now.Round(0) // drop the monotonic clock, which a log does not have: a replay might differ
	if e.reshaped {
		e.reshape()
	}
	e.growths.now = now
	e.usageHistory.sample(now)
	e.retryRefused(now)
	e.forgetAvoidance(now)
	e.growths.startDue(now)
	p := e.newPass(e.budget)
	p.spend((p.budget+1)/2, p.reroute)
	e.nodes.countWithin()
	p.evictions.evictWithdrawn()
	p.repairs.repair()
	p.growth.shrinkSurplus()
	e.publishNodes()
	p.processAgenda()
	p.reroute() // with what is left of the budget
	p.reportReasons()
	e.avoidances.schedule(now)
	return p.decisions
}

// Busy reports whether the last Decide left work to do.
func (e *Engine) Busy() bool {
	return e.changed.Len() > 0 || e.relocated.Len() > 0 || len(e.agenda) > 0 || e.reports.unreported.len() > 0 || e.nodes.toRepair.Len() > 0 || e.growths.surplus.Len() > 0 ||
		e.nodes.hasReplacementToReview()
}

// Due returns when Decide has something to do even without events; zero means never.
func (e *Engine) Due() time.Time { return earlier(e.usageHistory.due, e.waiting.Due()) }

// earlier returns the earlier one of two times, of which zero means never.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// pass is one call of Decide: all that has changed since the last one is looked at.
type pass struct {
	engine *Engine
	// budget is what is left of the Engine's.
	budget    int
	decisions []Decision
	// The steps of a pass that have methods of their own.
	evictions evictionPass
	repairs   repairPass
	growth    growthPass
}

func (e *Engine) newPass(budget int) *pass {
	p := &pass{engine: e, budget: budget}
	p.evictions.pass, p.repairs.pass, p.growth.pass = p, p, p
	return p
}

// spend lets do spend this part of the budget. It may spend a little more.
func (p *pass) spend(share int, do func()) {
	rest := p.budget - share
	p.budget = share
	do()
	p.budget += rest
}

// triedPerBudget is how many elastic workloads that are tried at other sizes on nodes cost as much as one evaluation:
// that of a hopeless workload can try thousands, and so cost more than all else in a pass. A head that is found is not
// charged for them: it is evaluated again in each pass until the heads of all queues are known, and if it cost all of
// the budget, those of the queues after it would never be.
const triedPerBudget = 10

// countedPerBudget is how many nodes, counted for a pod shape that was not counted lately, cost as much as one evaluation.
// As with triedPerBudget, only hopeless workloads are charged for them.
const countedPerBudget = 500

// work is what evaluations have cost beyond the usual.
type work struct{ tried, counted int }

func (ev *evaluator) workSoFar() work { return work{ev.tried, ev.nodes.finder.Counted()} }

// costSince returns what one evaluation costs that has begun at that work.
func (ev *evaluator) costSince(begin work) int {
	return 1 + (ev.tried-begin.tried)/triedPerBudget + (ev.nodes.finder.Counted()-begin.counted)/countedPerBudget
}

// addDecision appends a decision about the workload with the given urgency.
func (p *pass) addDecision(w *workload, urgency int32, d Decision) {
	d.Key, d.UID, d.Generation, d.Urgency = w.Key, w.UID, w.Generation, urgency
	if d.Why.Code == reason.None {
		if !d.Withdraw {
			p.engine.serial++
			w.serial = p.engine.serial
		}
		d.Serial = w.serial
	}
	p.decisions = append(p.decisions, d)
}

// decide processes the queues of one family: promises first, then the heads of its queues, then the growth of running
// workloads. It reports whether work is left.
func (p *pass) decide(f *family) (left bool) {
	p.breakOvercommitted(f)
	p.admitNominated(f)
	f.updateHoldBacks()
	f.waits.Settle()
	p.engine.holdBacks.chargeAll(f)
	p.serveHeads(f)
	p.engine.holdBacks.releaseAll(f)
	f.updateHoldBacks()
	if f.waits.IsSweeping() {
		return true
	}
	if p.reevaluateBlocked(f) {
		return true
	}
	return p.growth.grow(f) || !f.waits.IsSettled() || p.reevaluateBlocked(f)
}

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

// serveHeads serves the heads of the family's queues, each time the first in order, until no head is left or the
// budget is spent. None is served before all are known, and then at least one: what precedes it may cost all of the
// budget.
func (p *pass) serveHeads(f *family) {
	heads, cut := contest.New(p.engine.options.FairSharing != nil), false
	for _, q := range f.queues {
		c, cutHere := p.headOf(q)
		if c != nil {
			heads.Add(&c.Contestant)
		}
		cut = cut || cutHere
	}
	served := 0
	for first := heads.First(); first != nil && !cut && (p.budget > 0 || served == 0); first = heads.First() {
		c := first.Of.(*contestant)
		serve := !c.stale()
		if serve {
			p.engine.holdBacks.release(c.queue)
			p.serve(c)
			p.engine.holdBacks.chargeAfter(c)
			if served++; p.budget <= 0 {
				break
			}
		}
		var next *contestant
		next, cut = p.headOf(c.queue)
		heads.Replace(first, next.contestant())
		if serve {
			for _, v := range c.victims {
				heads.Recharged(v.Queue)
			}
			for _, y := range c.yields {
				heads.Recharged(y.w.queue.node)
			}
		}
	}
	if p.budget <= 0 {
		p.reportWaiting(f)
	}
	f.waits.Swept(cut, served, heads.First() != nil)
}

// reportWaiting tells the workloads of queues that must wait, as a head that was just served is not ready yet, why they
// are not evaluated: such a queue is no work that another pass would come back for.
func (p *pass) reportWaiting(f *family) {
	for _, q := range f.queues {
		if !p.engine.open(q) {
			p.reportBehindPromised(q)
			continue
		}
		if why := p.engine.mustWait(q); why.Code != reason.None {
			p.engine.reports.reportReady(q, why)
		}
	}
}

// hasWork reports whether there is a workload to evaluate in the family.
func (e *Engine) hasWork(f *family) bool {
	return e.canAdmitNominated(f) || slices.ContainsFunc(f.queues, func(q *clusterQueue) bool {
		return e.open(q) && e.mustWait(q).Code == reason.None
	})
}

// open reports whether the queue has a class to evaluate and nothing blocks the queue. A strict queue is blocked by
// its blocked head, and by a workload with a promise unless the next class comes before it.
func (e *Engine) open(q *clusterQueue) bool {
	if q.waits.Head() != nil || q.waits.Ready() == 0 {
		return false
	}
	first := classOf(q.waits.First()).turn()
	return q.Strategy != Strict || !slices.ContainsFunc(q.nominated.All(), func(r order.Rank) bool {
		return !first.before(e.workloads[r.Key].turn(), q)
	})
}

// reportBehindPromised tells the workloads of a strict queue that is not open, and has no head, that they wait behind one
// with a promise. Some may have come while another was before that, or in another order.
func (p *pass) reportBehindPromised(q *clusterQueue) {
	if q.Strategy == Strict && q.waits.Head() == nil && q.waits.Ready() > 0 {
		p.engine.reports.reportReady(q, whyBehind(q))
	}
}

// headOf returns the first class of the queue that is not hopeless, or nil. It blocks the hopeless ones before it. cut
// is set if the budget ended before it was found.
func (p *pass) headOf(q *clusterQueue) (head *contestant, cut bool) {
	for p.engine.open(q) {
		if why := p.engine.mustWait(q); why.Code != reason.None {
			p.engine.reports.reportReady(q, why)
			return nil, false
		}
		if p.budget <= 0 {
			return nil, true
		}
		c := classOf(q.waits.First())
		if head := q.waits.HeadBefore(&c.Class); head != nil {
			p.budget--
			why := whyBehind(q)
			p.engine.noteWhy(c, why)
			c.WaitBehind(head, p.engine.stateOf(q.family))
			p.engine.reports.report(c, why)
			continue
		}
		begin := p.engine.evaluator.workSoFar()
		found := p.engine.evaluator.evaluateInTurn(c)
		if found.verdict != hopeless {
			return newContestant(c, found), false
		}
		why := p.engine.evaluator.whyHopeless(c, found)
		p.budget -= p.engine.evaluator.costSince(begin)
		p.engine.block(c, why, &found)
	}
	p.reportBehindPromised(q)
	return nil, false
}
