package engine

import (
	"slices"

	"github.com/musterhq/muster/internal/engine/evaluate"
	"github.com/musterhq/muster/internal/engine/preempt"
	"github.com/musterhq/muster/internal/engine/reason"
	"github.com/musterhq/muster/internal/engine/state"
	"github.com/musterhq/muster/internal/engine/waiting"
)

// shapeOf returns the shape of the pod sets and takes a reference to it.
func (e *Engine) shapeOf(podSets []PodSet) *state.Shape {
	key := state.ShapeKey(podSets)
	s := e.shapes[key]
	if s == nil {
		s = &state.Shape{Key: key, PodSets: podSets, Elastic: slices.ContainsFunc(podSets, func(ps PodSet) bool { return ps.Elastic > 0 })}
		e.shapes[key] = s
	}
	s.Users++
	return s
}

// releaseShape releases a reference to the shape.
func (e *Engine) releaseShape(s *state.Shape) {
	if s.Users--; s.Users == 0 {
		delete(e.shapes, s.Key)
	}
}

// newClass returns a class without workloads.
func (e *Engine) newClass(key state.ClassKey, q *state.ClusterQueue, from *state.LocalQueue) *state.Class {
	c := &state.Class{ClassKey: key, Queue: q, LocalQueue: from}
	c.Class = waiting.Class{Of: c, Priority: key.Priority, From: &from.Local}
	q.Waits.Adopt(&c.Class)
	q.Classes[key], from.Classes[c] = c, struct{}{}
	return c
}

// joinClass adds the workload to its class.
func (e *Engine) joinClass(w *state.Workload, q *state.ClusterQueue) {
	key := state.ClassKey{Shape: w.Shape, Priority: w.Priority, Local: w.LocalKey(), Avoid: w.Avoid.Key()}
	c := q.Classes[key]
	if c == nil {
		c = e.newClass(key, q, w.Local)
	} else if c.FormedOf != q.Revision {
		c.MakeReady() // the queue has changed
	}
	isHead := c.Join(w.Rank())
	if isHead || c.FormedOf != q.Revision {
		e.evaluator.AddEntitled(c)
	}
	c.Unreported = append(c.Unreported, w.Key)
	w.Class = c
	switch {
	case !c.IsBlocked():
	case isHead && q.Preemption.WithinQueue == preempt.LowerOrNewerEqualPriority:
		// A head that has waited longer may evict more.
		c.MakeReady()
	default:
		e.reports.report(c, c.Why)
	}
	if head := c.HeldBy(); head != nil && c.Before(head) {
		c.MakeReady()
	}
	switch head := q.Waits.Head(); {
	case head != nil && head != &c.Class && c.Before(head):
		head.MakeReady() // it comes before the head that blocks the queue
	case head != nil && head != &c.Class, head == nil && c.IsFirst() && !e.open(q):
		e.reports.reportOtherwise(c, state.WhyBehind(q))
	}
}

// leaveClass removes the workload from its class.
func (e *Engine) leaveClass(w *state.Workload) {
	c, q := w.Class, w.Class.Queue
	w.Class = nil
	wasHead := c.Leave(w.Key)
	if wasHead && c.EntitledAt.In() {
		if q.Family != nil {
			q.Family.Enqueue() // others may take what was kept for it
		}
		if c.Len() > 0 {
			q.Entitled.Put(c)
		}
	}
	if c.Len() == 0 {
		q.RemoveEntitled(c)
		delete(q.Classes, c.ClassKey)
		delete(c.LocalQueue.Classes, c)
	}
}

// block sets the class, which cannot be admitted for the reason, aside until something changes that this depended on. In
// some queues others wait behind it.
func (e *Engine) block(c *state.Class, why reason.Reason, found *evaluate.Outcome) {
	e.noteWhy(c, why)
	c.Block(found.Cause(), e.stateOf(c.Queue.Family))
	e.reports.report(c, why)
	switch q := c.Queue; {
	case q.Strategy == Strict:
		q.Waits.HoldAll(&c.Class)
		e.reports.reportReady(q, state.WhyBehind(q))
		e.reports.notifyHead(c)
	case q.Strategy == ByResource:
		e.reports.notifyHead(c)
		if len(found.Lacks) > 0 {
			q.Waits.HoldFor(&c.Class, found.Lacks)
		}
	}
}

// noteWhy sets the reason of the class, which is reported to all its workloads to which another one was reported.
func (e *Engine) noteWhy(c *state.Class, why reason.Reason) {
	if why.Code != c.Why.Code || !why.SameBlame(c.Why) {
		c.ForgetReason()
	}
	c.ReportAgain()
	c.Why = why
}

// stateOf identifies the state of quota in the family, and of nodes.
func (e *Engine) stateOf(f *state.Family) waiting.State {
	return waiting.State{Charges: f.Waits.Charges(), Places: e.nodes.Places.Changes()}
}
