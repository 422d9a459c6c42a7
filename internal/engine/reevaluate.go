package engine

import (
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/musterhq/muster/internal/engine/evaluate"
	"github.com/musterhq/muster/internal/engine/reason"
	"github.com/musterhq/muster/internal/engine/state"
	"github.com/musterhq/muster/internal/engine/waiting"
)

// reevaluateBlocked makes the blocked classes ready for which something has changed that their last evaluation depended
// on. It reports whether there is a workload to evaluate in the family.
func (p *pass) reevaluateBlocked(f *state.Family) (some bool) {
	f.Waits.Settle()
	p.engine.publishNodes()
	return p.engine.hasWork(f) || p.reevaluateByUse(f) || p.reevaluateByGrowth(f)
}

// reevaluateByUse evaluates the classes again that may fit once more is used, the first of each queue. It reports
// whether that left a class to evaluate.
func (p *pass) reevaluateByUse(f *state.Family) (left bool) {
	now := p.engine.stateOf(f)
	return p.reevaluateEach(f.Waits.ByUse(now), now)
}

// reevaluateLater evaluates the other classes again that may fit once more is used, after all else in the family is
// done: some in each pass, so that no event waits for all of them. It reports whether that left a class to evaluate.
func (p *pass) reevaluateLater(f *state.Family) (left bool) {
	now := p.engine.stateOf(f)
	p.spend(min(p.budget, leastShare), func() { left = p.reevaluateEach(f.Waits.LaterByUse(now), now) })
	return left
}

func (p *pass) reevaluateEach(classes iter.Seq[*waiting.Class], now waiting.State) (left bool) {
	for c := range classes {
		if p.budget <= 0 {
			return true
		}
		_, ready := p.reevaluate(state.ClassOf(c), now)
		left = left || ready
	}
	return left
}

// reevaluate evaluates a blocked class, and makes it ready if it is not hopeless.
func (p *pass) reevaluate(c *state.Class, now waiting.State) (found evaluate.Outcome, ready bool) {
	begin := p.engine.evaluator.WorkSoFar()
	found = p.engine.reevaluate(c)
	p.budget -= p.engine.evaluator.CostSince(begin)
	if found.Verdict == state.Hopeless {
		c.Evaluated(now)
		return found, false
	}
	c.MakeReady()
	return found, true
}

// reevaluate evaluates a class as at the beginning of a pass.
func (e *Engine) reevaluate(c *state.Class) (found evaluate.Outcome) {
	e.holdBacks.ChargeAll(c.Queue.Family)
	defer e.holdBacks.ReleaseAll(c.Queue.Family)
	return e.evaluator.EvaluateInTurn(c)
}

// CheckWaiting evaluates one class of waiting workloads that should still have to wait, at most once each
// Options.CheckWaitingEvery, and only while the engine is at rest; checked reports whether it did. It returns the
// workloads that waited although they could have been admitted, or others evicted for them; the next Decide evaluates
// these. There should never be any: each shows a defect of the engine.
func (e *Engine) CheckWaiting(now time.Time) (missed []Key, checked bool) {
	if e.options.CheckWaitingEvery <= 0 || e.Busy() || !e.waiting.IsCheckDue(now.Round(0), e.options.CheckWaitingEvery) {
		return nil, false
	}
	return append(e.missedFamilies(), e.missedClass()...), true
}

// CheckDue returns when CheckWaiting has something to do, zero for never. It is known after the first call of
// CheckWaiting.
func (e *Engine) CheckDue() time.Time {
	if e.options.CheckWaitingEvery <= 0 {
		return time.Time{}
	}
	return e.waiting.CheckDue()
}

// missedClass evaluates the next blocked class.
func (e *Engine) missedClass() []Key {
	c := state.ClassOf(e.waiting.NextToCheck(e.mayBeNext))
	if c == nil || e.reevaluate(c).Verdict == state.Hopeless {
		return nil
	}
	c.MakeReady()
	return []Key{c.Head().Key}
}

// mayBeNext reports whether the class is not behind the head of a strict queue, and its queue may admit workloads.
func (t *tallies) mayBeNext(c *waiting.Class) bool {
	q := state.ClassOf(c).Queue
	return (q.Strategy != Strict || c == q.Waits.Head()) && q.Fault().Code == reason.None &&
		t.mustWait(q).Code == reason.None
}

// missedFamilies puts the families on the agenda that have something to evaluate and are not on it, and returns the
// first workload of each.
func (e *Engine) missedFamilies() (missed []Key) {
	for _, name := range slices.Sorted(maps.Keys(e.families)) {
		f := e.families[name]
		if f.Dirty || !e.hasWork(f) {
			continue
		}
		f.Enqueue()
		for _, q := range f.Queues {
			if q.IsOpen(e.workloads) && e.tallies.mustWait(q).Code == reason.None {
				missed = append(missed, q.Waits.First().Head().Key)
				break
			}
		}
	}
	return missed
}

// reevaluateByGrowth makes the classes ready that wait for a workload which is not to grow soon any more, as workloads
// of other queues, or other pods, have taken the capacity. It is called at the end of a pass, and does nothing in a
// state in which it did so before. It reports whether that left a class to evaluate.
func (p *pass) reevaluateByGrowth(f *state.Family) (left bool) {
	now := p.engine.stateOf(f)
	if !slices.ContainsFunc(f.Queues, func(q *state.ClusterQueue) bool { return len(q.Waits.ByGrowth(now)) > 0 }) {
		return false
	}
	p.engine.holdBacks.ChargeAll(f)
	var stopped []*waiting.Class
	for _, q := range f.Queues {
		if waits := q.Waits.ByGrowth(now); len(waits) > 0 {
			q.Waits.GrowersChecked(now)
			p.engine.holdBacks.Release(q) // as when its classes are evaluated
			stopped = append(stopped, p.withoutGrower(q, waits)...)
			p.engine.holdBacks.Charge(q)
		}
	}
	p.engine.holdBacks.ReleaseAll(f)
	for _, c := range stopped {
		c.Reevaluate()
	}
	return len(stopped) > 0
}

// withoutGrower returns those of the classes that wait for a workload which is not to grow soon any more.
func (p *pass) withoutGrower(q *state.ClusterQueue, waits []*waiting.Class) (out []*waiting.Class) {
	t, grows := p.engine.growths.ResizableOf(q), map[*state.Workload]bool{}
	for _, c := range waits {
		grower, some := c.Grower().(*state.Workload)
		if !some {
			continue
		}
		if _, known := grows[grower]; !known {
			i, listed := t.Find(grower.Key)
			grows[grower] = listed && t.Members[i] == grower && p.engine.growths.FirstToGrow(q, t, []int{i}) != nil
		}
		if !grows[grower] {
			out = append(out, c)
		}
	}
	return out
}
