package engine

import (
	"slices"
	"time"

	"github.com/musterhq/muster/internal/engine/calendar"
	"github.com/musterhq/muster/internal/engine/order"
	"github.com/musterhq/muster/internal/engine/state"
	"github.com/musterhq/muster/internal/engine/waiting"
)

// update plans the starts of the family anew where something has changed. The hold-backs of the family are charged. It
// reports whether others may pass, or grow, now.
func (r *reservationPass) update(f *state.Family) (moved bool) {
	if !f.Backfills {
		return false
	}
	before := f.Waits.ReservationMoves()
	defer func() { moved = f.Waits.ReservationMoves() != before }()
	r.starts.runs.Refresh(f)
	r.checkPromises(f)
	r.plan(f)
	if f.SpareGrew {
		f.SpareGrew = false
		r.moved(f, anyOnNodes(f.Reserved))
	}
	return moved
}

// isStale reports whether a planned start of the family depends on something that has changed.
func (r *reservationPass) isStale(f *state.Family) bool {
	return slices.ContainsFunc(f.Reserved, func(planned *state.Reservation) bool {
		return planned.PlannedIn != r.stateOf(f) || planned.Moves != r.starts.moves
	})
}

// updateLast plans the starts anew that depend on what a pass has decided. It reports whether others may pass, or grow,
// now.
func (r *reservationPass) updateLast(f *state.Family) (left bool) {
	if !r.isStale(f) {
		return false
	}
	r.engine.holdBacks.ChargeAll(f)
	left = r.update(f)
	r.engine.holdBacks.ReleaseAll(f)
	return left || r.engine.hasWork(f)
}

// maxFailed bounds how many workloads are tried of which no start can be planned: of one LocalQueue, so that those of a
// user take no start from others, and in all. mostTried bounds how many workloads of a ClusterQueue are looked at.
const (
	maxFailedOfLocal, maxFailed = 8, 32
	mostTried                   = 256
)

// plan plans the starts of the first workloads in order that do not fit, and of those with a promise. It keeps the
// starts that were planned before unless something has changed that they depend on, and those of workloads that are
// about to be evaluated.
func (r *reservationPass) plan(f *state.Family) {
	before := f.Reserved
	n := &newPlan{pass: r, family: f, before: before, failedOf: map[Key]int{}}
	candidates := r.candidates(f)
	for _, c := range candidates {
		if p := r.promiseOf(c); p != nil {
			void := n.outranks(c)
			n.moved = n.moved || p.Void != void // others may pass a start that is not promised any more
			p.Void, p.Overtaken = void, p.Overtaken || void
		}
		if r.isPromised(c) || n.countBefore(c) < r.starts.most && !n.givesUp(c) {
			n.add(c)
		}
	}
	f.Reserved = n.planned
	r.reserveOrder(f)
	if n.moved || slices.ContainsFunc(before, func(old *state.Reservation) bool {
		return reservationOf(n.planned, old.Class) == nil
	}) {
		f.Version++ // what was found for the heads of queues may delay a start
		r.moved(f, anyOnNodes(before) || anyOnNodes(n.planned))
	}
	r.starts.planned.Insert(f)
	r.schedule(f)
}

// newPlan is the starts of a family while they are planned anew, in order.
type newPlan struct {
	pass            *reservationPass
	family          *state.Family
	before, planned []*state.Reservation
	// moved is set once a start differs from that before. failed counts the workloads that have no start, failedOf those
	// of each LocalQueue.
	moved    bool
	failed   int
	failedOf map[Key]int
}

// givesUp reports whether no start is looked for any more for workloads such as the head of the class.
func (n *newPlan) givesUp(c *state.Class) bool {
	return n.failed >= maxFailed || n.failedOf[c.LocalQueue.Key] >= maxFailedOfLocal
}

// add adds the start of the head of the class, if it has one.
func (n *newPlan) add(c *state.Class) {
	r, f := n.pass, n.family
	old := reservationOf(n.before, c)
	switch {
	case old != nil && c.IsReady(),
		old != nil && !n.moved && old.PlannedIn == r.stateOf(f) && old.Moves == r.starts.moves:
		n.planned = append(n.planned, old)
		return
	case old == nil && c.Unplanned == r.stateOf(f):
		return
	}
	found := r.planStart(c, n.planned)
	switch {
	case found == nil:
		n.failed++
		n.failedOf[c.LocalQueue.Key]++
		c.Unplanned = r.stateOf(f)
		n.moved = n.moved || old != nil
		return
	case found.Same(old):
		*old, found = *found, old
	default:
		n.moved = true
	}
	n.planned = append(n.planned, found)
}

// outranks reports whether a start is planned for a workload that goes before the head of the class whenever that was
// queued.
func (n *newPlan) outranks(c *state.Class) bool {
	return slices.ContainsFunc(n.planned,
		func(planned *state.Reservation) bool { return planned.Rank.Outranks(c.Head()) })
}

// countBefore returns how many of the starts are for workloads before the head of the class.
func (n *newPlan) countBefore(c *state.Class) (count int) {
	for _, planned := range n.planned {
		if order.Compare(planned.Rank, c.Head()) < 0 {
			count++
		}
	}
	return count
}

// promiseOf returns the promise of the head of the class, nil if it has none that is not late.
func (r *reservationPass) promiseOf(c *state.Class) *state.Promise {
	if w := r.engine.workloads[c.Head().Key]; w != nil && w.Promised != nil && !w.Promised.Late {
		return w.Promised
	}
	return nil
}

// isPromised reports whether the head of the class has a promise that can be kept.
func (r *reservationPass) isPromised(c *state.Class) bool {
	return r.starts.planner.IsPromised(c.Head().Key)
}

// moved tells those that wait behind planned starts of the family that these have changed: if some are on nodes, in all
// families.
func (r *reservationPass) moved(f *state.Family, onNodes bool) {
	f.Waits.ReservationsMoved()
	if !onNodes {
		return
	}
	r.starts.listOnNodes(r.engine.families)
	r.starts.moves++
	for _, other := range r.engine.families {
		if other != f {
			other.Waits.ReservationsMoved()
			other.Enqueue() // its starts may come behind those that have moved, and its elastic workloads may grow
		}
	}
}

// anyOnNodes reports whether any of the starts is on nodes.
func anyOnNodes(reserved []*state.Reservation) bool {
	return slices.ContainsFunc(reserved, func(planned *state.Reservation) bool { return planned.OnNodes })
}

// reservationOf returns the reservation for the head of the class, nil if there is none.
func reservationOf(all []*state.Reservation, c *state.Class) *state.Reservation {
	for _, r := range all {
		if r.Class == c && c.Len() > 0 && r.Rank == c.Head() {
			return r
		}
	}
	return nil
}

// candidates returns the classes of the family for which a start may be planned, in order: some more than are needed.
func (r *reservationPass) candidates(f *state.Family) (out []*state.Class) {
	for _, q := range f.Queues {
		n, of := 0, map[Key]int{}
		for waits := range q.Waits.Lacking() {
			c := state.ClassOf(waits)
			if of[c.LocalQueue.Key]++; of[c.LocalQueue.Key] <= r.starts.most+maxFailedOfLocal {
				out = append(out, c)
			}
			if n++; n >= mostTried {
				break
			}
		}
	}
	also := func(c *state.Class) {
		if c.Queue.Waits.Backfill && !slices.Contains(out, c) {
			out = append(out, c)
		}
	}
	for _, old := range f.Reserved { // those that are to be evaluated again keep their starts until then
		if old.IsWaiting(r.engine.workloads) && old.Class.IsReady() {
			also(old.Class)
		}
	}
	// Those with a promise are there whatever they were found to lack: if they came and went with each evaluation, so
	// would the starts of others, which would have them evaluated again.
	for _, key := range order.SortedKeys(f.Promised) {
		if w := f.Promised[key]; w.Class != nil && w.Class.Head().Key == key && !w.Promised.Late {
			also(w.Class)
		}
	}
	slices.SortFunc(out, r.compare)
	return out
}

// compare orders classes as their starts are planned: of equals one with a promise comes first, whether it is void or
// not.
func (r *reservationPass) compare(a, b *state.Class) int {
	first, second := a.Head(), b.Head()
	if !first.Outranks(second) && !second.Outranks(first) {
		if c := order.TrueFirst(r.promiseOf(a) != nil, r.promiseOf(b) != nil); c != 0 {
			return c
		}
	}
	return order.Compare(first, second)
}

// planStart plans the start of the head of the class behind those before it: by limits if it may be promised, or else
// as expected.
func (r *reservationPass) planStart(c *state.Class, before []*state.Reservation) (found *state.Reservation) {
	begin, trials := r.engine.evaluator.WorkSoFar(), r.engine.evaluator.Trials
	before = r.starts.planner.Before(c, before)
	hindered := len(before) == 0 && r.anyBefore(c)
	if len(before) == 0 && !hindered || r.isPromised(c) {
		found = r.starts.planner.EarliestStart(c, before, calendar.Limits)
	}
	if found == nil {
		found = r.starts.planner.EarliestStart(c, before, calendar.Expected)
	}
	r.pass.budget -= r.engine.evaluator.CostSince(begin) + r.engine.evaluator.Trials - trials
	if found != nil {
		found.Hindered = hindered
		found.PlannedIn, found.Moves = r.stateOf(c.Queue.Family), r.starts.moves
	}
	return found
}

// anyBefore reports whether another workload may start that comes before the head of the class, and of which no start
// is planned: in a queue that plans none, or in another tree that shares nodes. Nothing can be promised behind it.
func (r *reservationPass) anyBefore(c *state.Class) bool {
	is := func(other *state.Class) bool {
		return other != c && order.Compare(other.Head(), c.Head()) < 0 && !(other.IsBlocked() &&
			(other.Why.Code.ToFix() || other.IsLacking() && other.Unplanned == r.stateOf(other.Queue.Family)))
	}
	some := func(f *state.Family) bool {
		return slices.ContainsFunc(f.Queues, func(q *state.ClusterQueue) bool {
			for _, other := range q.Classes {
				if is(other) {
					return true
				}
			}
			return false
		})
	}
	f := c.Queue.Family
	if len(f.Queues) > 1 && some(f) {
		return true
	}
	if len(r.engine.families) > 1 && r.engine.evaluator.FormOf(c).OnNodes() {
		for _, other := range r.engine.families {
			if other != f && some(other) {
				return true
			}
		}
	}
	return false
}

// stateOf is the state of what runs that a planned start depends on, in the family and on the nodes.
func (r *reservationPass) stateOf(f *state.Family) waiting.State {
	return waiting.State{Charges: f.Waits.Charges(), Places: r.engine.nodes.Places.Changes(),
		Reservations: f.Calendar.Version() + r.starts.runs.OnNodes.Version()}
}

// reserveOrder tells the waiting room from where on the shortest classes go first.
func (r *reservationPass) reserveOrder(f *state.Family) {
	ranks := make([]order.Rank, len(f.Reserved))
	for i, planned := range f.Reserved {
		ranks[i] = planned.Rank
	}
	slices.SortFunc(ranks, order.Compare)
	if len(ranks) >= r.starts.most {
		f.Waits.Reserve(true, ranks[r.starts.most-1])
	} else {
		f.Waits.Reserve(false, order.Rank{})
	}
}

// blocked plans a start for the class, which was just blocked, if it is among the first.
func (r *reservationPass) blocked(c *state.Class) {
	f := c.Queue.Family
	n := &newPlan{planned: f.Reserved}
	if c.Queue.Waits.Backfill && c.IsLacking() && (n.countBefore(c) < r.starts.most || r.isPromised(c)) {
		r.plan(f)
	}
}

// served plans the start of the next workload in order, if the one that was just served had a planned start.
func (r *reservationPass) served(key Key, f *state.Family) {
	if f.PlansStartOf(key) {
		r.plan(f)
	}
}

// promise promises the first start of each family that rests on limits alone. It does so once nothing is left to
// decide: until then, others may come first.
func (r *reservationPass) promise() {
	if r.engine.Busy() {
		return
	}
	for _, planned := range r.starts.planner.Reserved { // workloads of other trees may come before it, or do so no longer
		r.starts.planned.Insert(planned.Class.Queue.Family)
	}
	for f := range r.starts.planned {
		switch {
		case len(f.Reserved) == 0 || !f.Reserved[0].IsWaiting(r.engine.workloads):
		case f.HinderedIn != r.stateOf(f) && r.hinderedNow(f.Reserved[0]) != f.Reserved[0].Hindered:
			f.Reserved[0].Moves, f.HinderedIn = -1, r.stateOf(f)
			f.Enqueue()
		case f.Reserved[0].IsPromise():
			r.promiseStart(f.Reserved[0])
			r.schedule(f)
		}
	}
	clear(r.starts.planned)
}

// hinderedNow returns what Hindered would be if the start were planned now.
func (r *reservationPass) hinderedNow(first *state.Reservation) bool {
	return len(r.starts.planner.Before(first.Class, nil)) == 0 && r.anyBefore(first.Class)
}

// promiseStart promises a start.
func (r *reservationPass) promiseStart(first *state.Reservation) {
	w := r.engine.workloads[first.Rank.Key]
	if w == nil || !first.IsWaiting(r.engine.workloads) || first.At.Before(r.starts.runs.Now) {
		return // who holds it up runs beyond a limit: nobody knows for how long
	}
	for _, other := range w.ClusterQueue.Family.Promised {
		if other != w && other.HasPromise() {
			return // one at a time: if all were promised, none could pass
		}
	}
	if w.Promised == nil {
		w.Promised = &state.Promise{At: first.At, Made: r.starts.runs.Now, Nodes: r.engine.nodes.NodesVersion,
			Quota: w.ClusterQueue.Revision, Limits: r.starts.runs.Raised}
		w.ClusterQueue.Family.Promised[w.Key] = w
	} else if first.At.Before(w.Promised.At) {
		w.Promised.At = first.At
	}
}

// checkPromises counts the promises of the family that are late by now. Others may pass the starts of those.
func (r *reservationPass) checkPromises(f *state.Family) {
	late := false
	for _, w := range f.Promised {
		late = r.starts.checkLate(w) || late
	}
	if late {
		f.Version++
		r.moved(f, anyOnNodes(f.Reserved))
	}
}

// schedule lets the engine come back when a planned start may change, or its time has come.
func (r *reservationPass) schedule(f *state.Family) {
	next := time.Time{}
	for _, planned := range f.Reserved {
		if planned.At.After(r.starts.runs.Now) {
			next = earlier(next, planned.At)
		}
		if !planned.IsPromise() {
			next = earlier(next, f.Calendar.Moves())
			if planned.OnNodes {
				next = earlier(next, r.starts.runs.OnNodes.Moves())
			}
		}
	}
	for _, w := range f.Promised {
		if !w.Promised.Late {
			next = earlier(next, w.Promised.At.Add(lateAfter+time.Second))
		}
	}
	key := Key{Name: f.Name}
	if next.IsZero() {
		r.engine.waiting.Stop(waiting.Replan, key)
	} else {
		r.engine.waiting.Set(waiting.Replan, key, next)
	}
}
