package waiting

import (
	"container/ring"
	"maps"
	"slices"
	"time"

	"github.com/musterhq/muster/internal/engine/order"
	"github.com/musterhq/muster/internal/engine/quota"
)

// Class is what the room knows of the workloads of a queue that wait for the same thing. Its owner embeds it.
type Class struct {
	// Of is the class as its owner knows it.
	Of any
	// Priority is that of all its workloads, and From the LocalQueue of all. Usual is how long they usually run.
	Priority int32
	From     *Local
	Usual    time.Duration

	queue     *Queue
	workloads order.Queue
	// at is the position among the ready classes of the queue.
	at order.Place
	// cause is why the class is blocked, if it is. evaluatedAt is the state of the last evaluation.
	blocked     bool
	cause       Cause
	evaluatedAt State
	// atShortest and atLacking are the positions in these lists of a queue that plans starts.
	atShortest, atLacking order.Place
	// round is its position in the rounds of the safety net while it is blocked.
	round ring.Ring
}

// Local is the part of a LocalQueue on which the order of classes depends.
type Local struct {
	// Standing orders the classes of a queue whose Rules say ByUsage, the smallest first.
	Standing float64
}

// Cause is what an evaluation that found no fit depended on: the class is evaluated again once any of it changes.
type Cause struct {
	// Quota are the amounts that were short: more of any may help, and so may workloads that use any and can be evicted.
	Quota []quota.Index
	// Flavors are the flavors whose nodes lacked capacity.
	Flavors []string
	// Use is set if the class may fit because more is used, not less: it would be given other flavors, or evict others.
	Use bool
	// Growth is set if running workloads of the queue are to grow into what the class would take. Grower is one of them
	// that has the capacity to grow; nil if there is none yet.
	Growth bool
	Grower any
	// Lacks is set if the class waits for others to end: in a queue that plans starts, its start may be planned.
	Lacks bool
	// Behind is set if the class would delay a planned start.
	Behind bool
}

// State identifies the state of quota and of nodes that an evaluation depended on.
type State struct {
	// Charges counts the changes of usage in the family, Places the changes of nodes and of what is on them, and
	// Reservations the changes of planned starts that may let others pass.
	Charges      int
	Places       uint64
	Reservations int
}

// Alone returns a class of one workload that is in no queue: to evaluate a workload as if it were the next.
func Alone(of any, r order.Rank) Class {
	c := Class{Of: of}
	c.workloads.Push(r)
	return c
}

// Head returns the rank of the first workload, zero if there is none.
func (c *Class) Head() order.Rank {
	head, _ := c.workloads.Peek()
	return head
}

// Workloads returns the ranks of all workloads in no particular order. The slice must be neither modified nor retained.
func (c *Class) Workloads() []order.Rank { return c.workloads.All() }

// Len returns the number of workloads.
func (c *Class) Len() int { return c.workloads.Len() }

// Before reports whether the class comes before another class of its queue. Heaps call it more often than anything
// else.
func (c *Class) Before(other *Class) bool {
	if c.queue.ByUsage && c.From.Standing != other.From.Standing {
		return c.From.Standing < other.From.Standing
	}
	return c.workloads.Before(&other.workloads)
}

// IsBlocked reports whether the class waits for something in its cause to change.
func (c *Class) IsBlocked() bool { return c.blocked }

// IsReady reports whether the class waits to be evaluated, IsFirst whether it is the first of its queue that does.
func (c *Class) IsReady() bool { return c.at.In() }

// IsFirst reports whether the class is the first of its queue that waits to be evaluated.
func (c *Class) IsFirst() bool { return c.IsReady() && c.queue.First() == c }

// IsLacking reports whether the class is blocked, in a queue that plans starts, until others end.
func (c *Class) IsLacking() bool { return c.atLacking.In() }

// Grower returns the workload that is to grow into what the class would take, nil if there is none.
func (c *Class) Grower() any { return c.cause.Grower }

// Join adds a workload to the class. It reports whether the workload is its head now. A blocked class with another head
// is evaluated again: the cause was that of the former head, and the new one may evict other workloads.
func (c *Class) Join(r order.Rank) (isHead bool) {
	before := c.Head()
	c.workloads.Push(r)
	isHead = c.Head() != before
	if isHead || !c.blocked {
		c.MakeReady()
	}
	return isHead
}

// Leave removes a workload from the class. It reports whether that was its head.
func (c *Class) Leave(key order.Key) (wasHead bool) {
	wasHead = c.Head().Key == key
	c.workloads.Remove(key)
	switch {
	case c.workloads.Len() == 0, wasHead && c.blocked:
		c.MakeReady()
	case wasHead && c.at.In():
		c.queue.enqueue(c)
	}
	return wasHead
}

// Block sets the class, which was the first of its queue, aside until something in its cause changes.
func (c *Class) Block(cause Cause, now State) {
	q := c.queue
	q.unlist(c)
	c.blocked, c.cause, c.evaluatedAt = true, cause, now
	q.setAside(c)
	add(q.blocked, c.Priority, c)
	for _, i := range cause.Quota {
		add(q.family.short, i, c)
	}
	for _, name := range cause.Flavors {
		add(q.room.byFlavor, name, c)
	}
	if cause.Use {
		q.byUse[c] = struct{}{}
	}
	if cause.Growth {
		q.byGrowth[c] = struct{}{}
	}
	q.room.rounds.add(c)
}

// MakeReady queues the class for evaluation, whether or not it is blocked. An empty class is neither ready nor blocked.
func (c *Class) MakeReady() {
	q := c.queue
	if c.blocked {
		remove(q.blocked, c.Priority, c)
		if q.family != nil {
			for _, i := range c.cause.Quota {
				delete(q.family.short[i], c) // there are few amounts: the set is needed again
			}
		}
		for _, name := range c.cause.Flavors {
			remove(q.room.byFlavor, name, c)
		}
		delete(q.byUse, c)
		delete(q.byGrowth, c)
		q.room.rounds.remove(c)
		q.takeBack(c)
		c.blocked, c.cause = false, Cause{}
	}
	if q.head == c {
		q.head = nil
		q.touch()
	}
	q.enqueue(c)
}

// Reevaluate makes a blocked class ready: during a sweep of several passes, at the end of the sweep.
func (c *Class) Reevaluate() {
	if f := c.queue.family; f != nil && f.sweeping && c.blocked {
		f.afterSweep[c] = struct{}{}
		return
	}
	c.MakeReady()
}

// add adds a class to a set of an index, remove removes it.
func add[K comparable](index map[K]map[*Class]struct{}, at K, c *Class) {
	set := index[at]
	if set == nil {
		set = map[*Class]struct{}{}
		index[at] = set
	}
	set[c] = struct{}{}
}

func remove[K comparable](index map[K]map[*Class]struct{}, at K, c *Class) {
	set := index[at]
	if delete(set, c); set != nil && len(set) == 0 {
		delete(index, at)
	}
}

// byHead returns the classes in the order of their heads, so that no result depends on the order of a map.
func byHead(classes map[*Class]struct{}) []*Class {
	return slices.SortedFunc(maps.Keys(classes), compareHeads)
}

func compareHeads(a, b *Class) int { return order.Compare(a.Head(), b.Head()) }
