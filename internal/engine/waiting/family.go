package waiting

import (
	"iter"
	"slices"

	"github.com/musterhq/muster/internal/engine/preempt"
	"github.com/musterhq/muster/internal/engine/quota"
)

// Family is what the room knows of all queues of one tree of cohorts: what one of them releases, another may take.
type Family struct {
	// touch is called when there is something to evaluate in the family.
	touch  func()
	queues []*Queue
	// short are the blocked classes, by the amounts of which there has to be more.
	short map[quota.Index]map[*Class]struct{}
	// released are the amounts of which something was released, sharesMoved is set if the usage of any queue has changed
	// with fair sharing. What follows from that is done by Settle.
	released    []quota.Index
	sharesMoved bool
	// charges counts the changes of usage, including what is held back.
	charges int
	// sweeping is set during a sweep; afterSweep has the blocked classes to evaluate at its end.
	sweeping   bool
	afterSweep map[*Class]struct{}
	reserved   reserved
}

// NewFamily returns a family of the queues, which leave the families that they were in. Their classes must be made
// ready. touch is called when there is something to evaluate.
func NewFamily(queues []*Queue, touch func()) *Family {
	f := &Family{touch: touch, queues: queues, short: map[quota.Index]map[*Class]struct{}{},
		afterSweep: map[*Class]struct{}{}}
	for _, q := range queues {
		q.family, q.head = f, nil
	}
	return f
}

// LeaveFamily takes a queue out of its family: its quota is not known any more.
func (q *Queue) LeaveFamily() { q.family, q.head = nil, nil }

// Released publishes that there may be more of the amounts for others.
func (f *Family) Released(amounts []quota.Index) {
	if len(amounts) > 0 {
		f.touch()
		f.released = quota.Union(f.released, amounts...)
	}
}

// SharesMoved publishes that the usage of a queue has changed where queues are compared by their shares: other
// evictions may be allowed now.
func (f *Family) SharesMoved() {
	f.sharesMoved = true
	f.touch()
}

// UsageChanged publishes that something was charged, released or held back: classes whose cause says Use may fit now,
// and others may have taken what workloads would grow into.
func (f *Family) UsageChanged() {
	f.charges++
	if f.DependsOnUse() {
		f.touch()
	}
}

// Charges counts the changes of usage.
func (f *Family) Charges() int { return f.charges }

// DependsOnUse reports whether the family has classes to look at whenever usage or nodes change in any way.
func (f *Family) DependsOnUse() bool {
	return slices.ContainsFunc(f.queues, func(q *Queue) bool { return len(q.byUse)+len(q.byGrowth) > 0 })
}

// IsSettled reports whether Settle has nothing to do.
func (f *Family) IsSettled() bool { return len(f.released) == 0 && !f.sharesMoved }

// Settle makes the classes ready that were short of quota that was released, and those to evaluate after a sweep. It
// does nothing during a sweep.
//
// With fair sharing, any change of shares may allow other evictions, so that all classes of queues that can reclaim are
// made ready.
func (f *Family) Settle() {
	if f.sweeping {
		return
	}
	for c := range f.afterSweep {
		if c.blocked {
			c.MakeReady()
		}
	}
	clear(f.afterSweep)
	for _, i := range f.released {
		for c := range f.short[i] {
			c.MakeReady()
		}
	}
	if f.sharesMoved {
		for _, q := range f.queues {
			if q.Preemption.Reclaim == preempt.Never {
				continue
			}
			for _, classes := range q.blocked {
				for c := range classes {
					c.MakeReady()
				}
			}
		}
	}
	f.released, f.sharesMoved = nil, false
}

// firstByUse is how many classes of a queue whose cause says Use are evaluated in each state: the first in order. The
// others are evaluated once there is time.
const firstByUse = 8

// ByUse returns the blocked classes whose cause says Use, and that were last evaluated in another state: the first of
// each queue. They are to be evaluated at the end of a pass, once a state, so that this ends; Evaluated notes that it
// was done.
func (f *Family) ByUse(now State) iter.Seq[*Class] {
	return f.byUse(now, func(c []*Class) []*Class { return c[:min(len(c), firstByUse)] })
}

// LaterByUse returns the classes that come after those of ByUse. They are to be evaluated once a state as well, when
// nothing else is left to do: where usage changes all the time and there are thousands, only the first are evaluated.
func (f *Family) LaterByUse(now State) iter.Seq[*Class] {
	return f.byUse(now, func(c []*Class) []*Class { return c[min(len(c), firstByUse):] })
}

func (f *Family) byUse(now State, part func([]*Class) []*Class) iter.Seq[*Class] {
	return func(yield func(*Class) bool) {
		for _, q := range f.queues {
			if len(q.byUse) == 0 {
				continue
			}
			for _, c := range part(byHead(q.byUse)) {
				if c.evaluatedAt != now && !yield(c) {
					return
				}
			}
		}
	}
}

// Evaluated notes the state in which a blocked class was evaluated again, in vain.
func (c *Class) Evaluated(now State) { c.evaluatedAt = now }

// ByGrowth returns the blocked classes of the queue that wait for workloads to grow, if it was not yet checked in this
// state whether these are still to grow.
func (q *Queue) ByGrowth(now State) []*Class {
	if len(q.byGrowth) == 0 || q.growersCheckedAt == now {
		return nil
	}
	return byHead(q.byGrowth)
}

// GrowersChecked notes the state in which it was checked whether workloads are still to grow.
func (q *Queue) GrowersChecked(now State) { q.growersCheckedAt = now }
