package engine

import (
	"slices"

	"github.com/musterhq/muster/internal/engine/preempt"
	"github.com/musterhq/muster/internal/engine/reason"
	"github.com/musterhq/muster/internal/engine/waiting"
)

// shapeOf returns the shape of the pod sets and takes a reference to it.
func (e *Engine) shapeOf(podSets []PodSet) *shape {
	key := shapeKey(podSets)
	s := e.shapes[key]
	if s == nil {
		s = &shape{key: key, podSets: podSets, elastic: slices.ContainsFunc(podSets, func(ps PodSet) bool { return ps.Elastic > 0 })}
		e.shapes[key] = s
	}
	s.users++
	return s
}

// releaseShape releases a reference to the shape.
func (e *Engine) releaseShape(s *shape) {
	if s.users--; s.users == 0 {
		delete(e.shapes, s.key)
	}
}

// newClass returns a class without workloads.
func (e *Engine) newClass(key classKey, q *clusterQueue, from *localQueue) *class {
	c := &class{classKey: key, queue: q, from: from}
	c.Class = waiting.Class{Of: c, Priority: key.priority, From: &from.Local}
	q.waits.Adopt(&c.Class)
	q.classes[key], from.classes[c] = c, struct{}{}
	return c
}

// joinClass adds the workload to its class.
func (e *Engine) joinClass(w *workload, q *clusterQueue) {
	key := classKey{w.shape, w.Priority, w.LocalKey(), w.avoid.key()}
	c := q.classes[key]
	if c == nil {
		c = e.newClass(key, q, w.local)
	} else if c.formedOf != q.revision {
		c.MakeReady() // the queue has changed
	}
	isHead := c.Join(w.rank())
	if isHead || c.formedOf != q.revision {
		e.evaluator.addEntitled(c)
	}
	c.unreported = append(c.unreported, w.Key)
	w.class = c
	switch {
	case !c.IsBlocked():
	case isHead && q.Preemption.WithinQueue == preempt.LowerOrNewerEqualPriority:
		// A head that has waited longer may evict more.
		c.MakeReady()
	default:
		e.reports.report(c, c.why)
	}
	if head := c.HeldBy(); head != nil && c.Before(head) {
		c.MakeReady()
	}
	switch head := q.waits.Head(); {
	case head != nil && head != &c.Class && c.Before(head):
		head.MakeReady() // it comes before the head that blocks the queue
	case head != nil && head != &c.Class, head == nil && c.IsFirst() && !e.open(q):
		e.reports.reportOtherwise(c, whyBehind(q))
	}
}

// leaveClass removes the workload from its class.
func (e *Engine) leaveClass(w *workload) {
	c, q := w.class, w.class.queue
	w.class = nil
	wasHead := c.Leave(w.Key)
	if wasHead && c.entitledAt.In() {
		if q.family != nil {
			q.family.enqueue() // others may take what was kept for it
		}
		if c.Len() > 0 {
			q.entitled.Put(c)
		}
	}
	if c.Len() == 0 {
		q.removeEntitled(c)
		delete(q.classes, c.classKey)
		delete(c.from.classes, c)
	}
}

// block sets the class, which cannot be admitted for the reason, aside until something changes that this depended on. In
// some queues others wait behind it.
func (e *Engine) block(c *class, why reason.Reason, found *outcome) {
	e.noteWhy(c, why)
	c.Block(found.cause(), e.stateOf(c.queue.family))
	e.reports.report(c, why)
	switch q := c.queue; {
	case q.Strategy == Strict:
		q.waits.HoldAll(&c.Class)
		e.reports.reportReady(q, whyBehind(q))
		e.reports.notifyHead(c)
	case q.Strategy == ByResource:
		e.reports.notifyHead(c)
		if len(found.lacks) > 0 {
			q.waits.HoldFor(&c.Class, found.lacks)
		}
	}
}

// noteWhy sets the reason of the class, which is reported to all its workloads to which another one was reported.
func (e *Engine) noteWhy(c *class, why reason.Reason) {
	if why.Code != c.why.Code || !why.SameBlame(c.why) {
		c.forgetReason()
	}
	c.reportAgain()
	c.why = why
}

// stateOf identifies the state of quota in the family, and of nodes.
func (e *Engine) stateOf(f *family) waiting.State {
	return waiting.State{Charges: f.waits.Charges(), Places: e.nodes.places.Changes()}
}
