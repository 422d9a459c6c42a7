package engine

import (
	"slices"

	"github.com/musterhq/muster/internal/engine/durations"
	"github.com/musterhq/muster/internal/engine/evaluate"
	"github.com/musterhq/muster/internal/engine/order"
	"github.com/musterhq/muster/internal/engine/reason"
	"github.com/musterhq/muster/internal/engine/state"
	"github.com/musterhq/muster/internal/engine/waiting"
)

// shapes has the shapes of all workloads, by key.
type shapes map[string]*state.Shape

// of returns the shape of the pod sets and takes a reference to it.
func (s shapes) of(podSets []PodSet) *state.Shape {
	key := state.ShapeKey(podSets)
	shape := s[key]
	if shape == nil {
		shape = &state.Shape{Key: key, PodSets: podSets,
			Elastic: slices.ContainsFunc(podSets, func(ps PodSet) bool { return ps.Elastic > 0 })}
		s[key] = shape
	}
	shape.Users++
	return shape
}

// release releases a reference to the shape.
func (s shapes) release(shape *state.Shape) {
	if shape.Users--; shape.Users == 0 {
		delete(s, shape.Key)
	}
}

// joinClass adds the workload to its class.
func (e *Engine) joinClass(w *state.Workload, q *state.ClusterQueue) {
	var lasts durations.Forecast
	if q.Family != nil && q.Family.Backfills {
		e.starts.runs.Forecast(w)
		if q.Waits.Backfill {
			lasts = w.Forecast
		}
	}
	key := state.ClassKey{Shape: w.Shape, Priority: w.Priority, Local: w.LocalKey(), Avoid: w.Avoid.Key(),
		Lasts: lasts}
	for isApart(w, q.Classes[key], e.workloads) {
		key.Apart++
	}
	c := q.Classes[key]
	if c == nil {
		c = q.NewClass(key, w.Local)
	} else if c.FormedOf != q.Revision {
		c.MakeReady() // the queue has changed
	}
	isHead := c.Join(w.Rank())
	if isHead || c.FormedOf != q.Revision {
		e.evaluator.AddEntitled(c)
	}
	c.Unreported = append(c.Unreported, w.Key)
	w.Class = c
	if c.IsBlocked() {
		e.reports.report(c, c.Why)
	}
	switch head := q.Waits.Head(); {
	case head != nil && head != &c.Class && c.Before(head):
		head.MakeReady() // it comes before the head that blocks the queue
	case head != nil && head != &c.Class, head == nil && c.IsFirst() && !q.IsOpen(e.workloads):
		e.reports.reportOtherwise(c, state.WhyBehind(q))
	}
}

// isApart reports whether the workload must not join the class, nil for none: one of them has a promised start, and the
// other one would come before it.
func isApart(w *state.Workload, c *state.Class, workloads map[Key]*state.Workload) bool {
	if c == nil || c.Len() == 0 {
		return false
	}
	if order.Compare(w.Rank(), c.Head()) > 0 {
		return w.Promised != nil
	}
	head := workloads[c.Head().Key]
	return head != w && head.Promised != nil
}

// block sets the class, which cannot be admitted for the reason, aside until something changes that this depended on.
// In a strict queue all others wait behind it.
func (e *Engine) block(c *state.Class, why reason.Reason, found *evaluate.Outcome) {
	c.NoteWhy(why)
	c.Block(found.Cause, e.stateOf(c.Queue.Family))
	e.reports.report(c, why)
	if q := c.Queue; q.Strategy == Strict {
		q.Waits.HoldAll(&c.Class)
		e.reports.reportReady(q, state.WhyBehind(q))
		e.reports.notifyHead(c)
	}
}

// stateOf identifies the state of quota in the family, and of nodes.
func (e *Engine) stateOf(f *state.Family) waiting.State {
	return waiting.State{Charges: f.Waits.Charges(), Places: e.nodes.Places.Changes(),
		Reservations: f.Waits.ReservationMoves()}
}
