package engine

import (
	"slices"
	"time"

	"github.com/musterhq/muster/internal/engine/contest"
	"github.com/musterhq/muster/internal/engine/evaluate"
	"github.com/musterhq/muster/internal/engine/reason"
	"github.com/musterhq/muster/internal/engine/state"
)

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
	e.growths.SetTime(now)
	e.starts.runs.Now = now
	e.usageHistory.sample(now)
	e.retryRefused(now)
	e.forgetAvoidance(now)
	e.growths.StartDue(now)
	e.starts.replanDue(&e.waiting.Timers, now)
	p := e.newPass(e.budget)
	p.spend((p.budget+1)/2, p.reroute)
	e.nodes.CountWithin()
	p.evictions.evictWithdrawn()
	p.repairs.repair()
	p.growth.shrinkSurplus()
	e.publishNodes()
	p.processAgenda()
	p.reroute() // with what is left of the budget
	p.reportReasons()
	p.reservations.promise()
	e.avoidances.schedule(now)
	return p.decisions
}

// Busy reports whether the last Decide left work to do.
func (e *Engine) Busy() bool {
	return e.routing.changed.Len() > 0 || e.routing.relocated.Len() > 0 || len(e.agenda) > 0 ||
		e.reports.unreported.len() > 0 || e.nodes.ToRepair.Len() > 0 || e.growths.Surplus.Len() > 0 ||
		e.nodes.HasReplacementToReview()
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

// decide processes the queues of one family: nominations first, then the heads of its queues, then the growth of
// running workloads. It reports whether work is left.
func (p *pass) decide(f *state.Family) (left bool) {
	p.breakOvercommitted(f)
	p.admitNominated(f)
	f.UpdateHoldBacks()
	f.Waits.Settle()
	p.engine.holdBacks.ChargeAll(f)
	p.reservations.update(f)
	p.serveHeads(f)
	p.engine.holdBacks.ReleaseAll(f)
	f.UpdateHoldBacks()
	if f.Waits.IsSweeping() {
		return true
	}
	if p.reevaluateBlocked(f) {
		return true
	}
	return p.growth.grow(f) || !f.Waits.IsSettled() || p.reevaluateBlocked(f) || p.reservations.updateLast(f)
}

// serveHeads serves the heads of the family's queues, each time the first in order, until no head is left or the
// budget is spent. None is served before all are known, and then at least one: what precedes it may cost all of the
// budget.
func (p *pass) serveHeads(f *state.Family) {
	heads, cut := contest.New(p.engine.options.FairSharing != nil), false
	for _, q := range f.Queues {
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
			p.engine.holdBacks.Release(c.queue)
			p.serve(c)
			p.reservations.served(c.Rank.Key, c.queue.Family)
			p.engine.holdBacks.ChargeAfter(c.queue, c.TakesHoldBacks)
			if served++; p.budget <= 0 {
				break
			}
		}
		var next *contestant
		next, cut = p.headOf(c.queue)
		heads.Replace(first, next.contestant())
		if serve {
			for _, v := range c.Victims {
				heads.Recharged(v.Queue)
			}
			for _, y := range c.Yields {
				heads.Recharged(y.Workload.ClusterQueue.Node)
			}
		}
	}
	if p.budget <= 0 {
		p.reportWaiting(f)
	}
	f.Waits.Swept(cut, served, heads.First() != nil)
}

// reportWaiting tells the workloads of queues that must wait, as a head that was just served is not ready yet, why they
// are not evaluated: such a queue is no work that another pass would come back for.
func (p *pass) reportWaiting(f *state.Family) {
	for _, q := range f.Queues {
		if !q.IsOpen(p.engine.workloads) {
			p.reportBehindNominated(q)
			continue
		}
		if why := p.engine.tallies.mustWait(q); why.Code != reason.None {
			p.engine.reports.reportReady(q, why)
		}
	}
}

// hasWork reports whether there is a workload to evaluate in the family.
func (e *Engine) hasWork(f *state.Family) bool {
	return e.canAdmitNominated(f) || slices.ContainsFunc(f.Queues, func(q *state.ClusterQueue) bool {
		return q.IsOpen(e.workloads) && e.tallies.mustWait(q).Code == reason.None
	})
}

// reportBehindNominated tells the workloads of a strict queue that is not open, and has no head, that they wait behind
// one with a nomination. Some may have come while another was before that, or in another order.
func (p *pass) reportBehindNominated(q *state.ClusterQueue) {
	if q.Strategy == Strict && q.Waits.Head() == nil && q.Waits.Ready() > 0 {
		p.engine.reports.reportReady(q, state.WhyBehind(q))
	}
}

// headOf returns the first class of the queue that is not hopeless, or nil. It blocks the hopeless ones before it. cut
// is set if the budget ended before it was found.
func (p *pass) headOf(q *state.ClusterQueue) (head *contestant, cut bool) {
	for q.IsOpen(p.engine.workloads) {
		if why := p.engine.tallies.mustWait(q); why.Code != reason.None {
			p.engine.reports.reportReady(q, why)
			return nil, false
		}
		if p.budget <= 0 {
			return nil, true
		}
		c := state.ClassOf(q.Waits.First())
		begin := p.engine.evaluator.WorkSoFar()
		found := p.engine.evaluator.EvaluateInTurn(c)
		if found.Verdict != state.Hopeless {
			return newContestant(c, found), false
		}
		why := p.engine.evaluator.WhyHopeless(c, found)
		p.budget -= p.engine.evaluator.CostSince(begin)
		p.engine.block(c, why, &found)
		p.reservations.blocked(c)
	}
	p.reportBehindNominated(q)
	return nil, false
}

// serve carries out the outcome for the head of a queue.
func (p *pass) serve(c *contestant) {
	w := p.engine.workloads[c.Rank.Key]
	p.budget -= 1 + len(c.Victims) + len(c.Yields)
	w.LeaveClass()
	c.queue.Family.Version++
	given := &Admission{ClusterQueue: c.queue.Name, PodSets: c.Choice.Assignments}
	given.Checks = c.queue.ChecksFor(given)
	if c.Verdict == state.Preempting && w.MustTry() {
		p.try(w, given)
		return
	}
	c.queue.MarkPaid(c.class, c.Choice.Usage)
	if c.Verdict == state.Admissible {
		p.admit(w, given)
		return
	}
	for _, v := range c.Victims {
		p.evictions.evict(v, w)
	}
	for _, y := range c.Yields {
		p.resize(y.Workload, y.At, y.Given, w.Key)
	}
	why := c.Choice.Why
	why.Code, why.Preempted = reason.WaitingForPreemptedWorkloads, len(c.Victims)
	p.engine.nominate(w, given, c.Choice.Usage, why)
}

// reportReasons appends the reasons that have changed, oldest first, within the budget.
func (p *pass) reportReasons() {
	if !p.engine.reports.lagging.IsZero() && p.engine.growths.Now.Sub(p.engine.reports.lagging) >= longestUnreported {
		p.budget = max(p.budget, lateReports)
	}
	p.reportWithinBudget()
	switch {
	case p.engine.reports.unreported.len() == 0:
		p.engine.reports.lagging = time.Time{}
	case p.engine.reports.lagging.IsZero() || p.engine.growths.Now.Before(p.engine.reports.lagging):
		// or the clock was set back
		p.engine.reports.lagging = p.engine.growths.Now
	}
}

// A pass reports reasons with what is left of its budget: most reasons found while there is much to evaluate would
// change again before anybody has read them. But an engine that always has work must tell jobs why they wait, too:
// after longestUnreported each pass reports at least lateReports reasons.
const (
	longestUnreported = time.Second
	lateReports       = 50
)

func (p *pass) reportWithinBudget() {
	for p.budget > 0 {
		key, ok := p.engine.reports.unreported.take()
		if !ok {
			return
		}
		if w := p.engine.workloads[key]; w.Why.Code.IsNews(w.ReportedCode) || w.BlameChanged(w.Why) || w.BlamesHead() {
			p.budget--
			w.Reported, w.ReportedWhy = w.Why.Message(), w.Why
			p.addDecision(w, w.Priority, Decision{Why: w.Why})
		}
	}
}

// contestant is the head of a queue with the outcome of its evaluation.
type contestant struct {
	contest.Contestant
	queue   *state.ClusterQueue
	class   *state.Class
	version int
	evaluate.Outcome
}

func newContestant(c *state.Class, found evaluate.Outcome) *contestant {
	q := c.Queue
	out := &contestant{queue: q, class: c, version: q.Family.Version, Outcome: found}
	out.Contestant = contest.Contestant{Of: out, Queue: q.Node, QueueRank: q.Preemption.Rank, Rank: c.Head(),
		Usage: found.Choice.Usage, Borrowing: found.Choice.Borrowing}
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
	return c.version != c.queue.Family.Version || !c.class.IsFirst() || c.class.Head() != c.Rank
}
