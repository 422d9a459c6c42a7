package plan

import (
	"slices"
	"time"

	"github.com/musterhq/muster/internal/engine/calendar"
	"github.com/musterhq/muster/internal/engine/evaluate"
	"github.com/musterhq/muster/internal/engine/model"
	"github.com/musterhq/muster/internal/engine/order"
	"github.com/musterhq/muster/internal/engine/preempt"
	"github.com/musterhq/muster/internal/engine/quota"
	"github.com/musterhq/muster/internal/engine/state"
)

// Planner plans the starts of workloads.
type Planner struct {
	Evaluator *evaluate.Evaluator
	Runs      *Runs
	// Reserved are the planned starts on nodes, of all families, in order.
	Reserved []*state.Reservation
	released releasedCache
	merged   mergedCache
}

// mergedCache has the ends of a family and of the nodes together, so that they are merged once for many who want to
// pass.
type mergedCache struct {
	family, nodes     *calendar.Calendar
	familyAt, nodesAt int
	by                calendar.By
	entries           []*calendar.Entry
}

// of returns the entries of both calendars, in order.
func (m *mergedCache) of(family, nodes *calendar.Calendar, by calendar.By) []*calendar.Entry {
	if m.family != family || m.nodes != nodes || m.familyAt != family.Version() || m.nodesAt != nodes.Version() ||
		m.by != by {
		*m = mergedCache{family, nodes, family.Version(), nodes.Version(), by, calendar.Merge(family, nodes, by)}
	}
	return m.entries
}

// end is the end of something at a time: of a workload that runs, or of one that starts as reserved.
type end struct {
	at       time.Time
	key      order.Key
	reserved *state.Reservation
}

// search looks for the earliest start of a class.
type search struct {
	planner *Planner
	class   *state.Class
	onNodes bool
	// ends are in order. bounds are the lengths of its prefixes after which a start is tried: all that ends at one time
	// ends together.
	ends   []end
	bounds []int
	found  evaluate.Outcome
	// by says by whose ends. By limits, the start must be within the queue's own quota: what is borrowed may be reclaimed,
	// and so cannot be promised.
	by calendar.By
}

// EarliestStart returns the earliest start of the head of the class behind the reservations before it, as the ends of
// others say; nil if it has none. The hold-backs of all queues of the family must be charged: they are worked out anew
// for the time of the start.
func (p *Planner) EarliestStart(c *state.Class, before []*state.Reservation, by calendar.By) (r *state.Reservation) {
	s := &search{planner: p, class: c, by: by, onNodes: p.Evaluator.FormOf(c).OnNodes()}
	s.ends = p.endsOf(c.Queue.Family, s.onNodes, by, before)
	for i := range s.ends {
		if i+1 == len(s.ends) || !s.ends[i+1].at.Equal(s.ends[i].at) {
			s.bounds = append(s.bounds, i+1)
		}
	}
	p.try(c, func() {
		p.reserve(before, s.onNodes)
		p.shrink(c)
		if n := s.first(); n >= 0 {
			r = s.reservation(s.ends[:s.bounds[n]])
		}
	})
	return r
}

// try runs what as if no queue of the family held anything back, and undoes what it did. What is held back when others
// have ended is worked out then.
func (p *Planner) try(c *state.Class, what func()) {
	ev := p.Evaluator
	was := ev.Planning
	ev.Planning = true
	ev.Nodes.Departing++
	p.keepHoldBacks(c.Queue.Family, func() {
		ev.Tree.Try(func() {
			for _, q := range c.Queue.Family.Queues {
				ev.Tree.Release(q.Name, quota.Planned, q.HeldBack)
				q.HeldBack = nil
			}
			ev.Nodes.Places.Try(what)
		})
	})
	ev.Planning = was
	ev.Nodes.Departing--
}

// endsOf returns the ends that may matter to a workload of the family, in order.
func (p *Planner) endsOf(f *state.Family, onNodes bool, by calendar.By, before []*state.Reservation) []end {
	entries := f.Calendar.InOrder(by)
	if onNodes {
		entries = p.merged.of(f.Calendar, p.Runs.OnNodes, by)
	}
	out := make([]end, 0, len(entries)+len(before))
	for _, e := range entries {
		out = append(out, end{at: e.End(by), key: e.Key})
	}
	for _, r := range before {
		if at := p.endOf(r, by); !at.IsZero() {
			out = append(out, end{at: at, reserved: r})
		}
	}
	if len(before) > 0 {
		slices.SortStableFunc(out, func(a, b end) int { return a.at.Compare(b.at) })
	}
	return out
}

// endOf returns when the workload of a reservation ends if it starts as planned, zero if nobody knows.
func (p *Planner) endOf(r *state.Reservation, by calendar.By) time.Time {
	lasts := p.forecastOf(r).Cautious
	if by == calendar.Limits {
		lasts = p.forecastOf(r).Limit
	}
	if lasts == 0 {
		return time.Time{}
	}
	return r.At.Add(lasts)
}

// reserve gives the reservations what they reserve.
func (p *Planner) reserve(before []*state.Reservation, onNodes bool) {
	for _, r := range before {
		p.Evaluator.Tree.Charge(r.Class.Queue.Name, quota.Planned, r.Usage)
		if onNodes && r.OnNodes {
			p.hold(p.Evaluator.Workloads[r.Rank.Key], r.Given)
		}
	}
}

// hold makes the nodes have the workload at these places.
func (p *Planner) hold(w *state.Workload, given []model.Assignment) {
	p.Evaluator.Nodes.HoldAs(w, state.Placed{By: &model.Admission{PodSets: given}})
}

// shrink makes the elastic workloads of the class's queue as small as they have to be for it.
func (p *Planner) shrink(c *state.Class) {
	for _, s := range p.sparesOf(c) {
		p.Evaluator.Tree.Release(c.Queue.Name, quota.Planned, s.amounts)
		if p.Evaluator.FormOf(c).OnNodes() {
			p.without(s.of.Key, s.pods)
		}
	}
}

// spare is what an elastic workload gives up for another one.
type spare struct {
	of      *state.Workload
	pods    int32
	amounts quota.Vector
}

// sparesOf returns what the elastic workloads of the class's queue give up for it, also those whose last resize is not
// written yet.
func (p *Planner) sparesOf(c *state.Class) (out []spare) {
	for _, w := range c.Queue.Elastic {
		at := w.ResizableSet()
		if at < 0 || w.Leaving() || w.Priority > c.ClassKey.Priority {
			continue
		}
		if pods := p.sizeOf(w, at) - w.LeastOf(at); pods > 0 {
			out = append(out, spare{w, pods, p.Evaluator.Ledgers.VectorOfPods(&w.Held.PodSets[at], pods)})
		}
	}
	return out
}

// sizeOf returns the size of an elastic workload: in the present trial, if others are to yield in it.
func (p *Planner) sizeOf(w *state.Workload, at int) int32 {
	if ev := p.Evaluator; ev.YieldingIn != nil && ev.YieldingIn == w.ListedIn {
		if i, listed := ev.YieldingIn.Resizable.Find(w.Key); listed {
			return ev.Yielding[i]
		}
	}
	return w.Held.PodSets[at].Count
}

// without takes pods of a workload off the nodes.
func (p *Planner) without(key order.Key, pods int32) {
	(&evaluate.NodeCapacity{Evaluator: p.Evaluator}).Without(&preempt.Holder{Key: key}, pods)
}

// release lets these end.
func (s *search) release(ends []end) {
	for _, e := range ends {
		s.planner.release(s.class, e, s.onNodes)
	}
}

// release lets one workload end, which may have shrunk for the class before.
func (p *Planner) release(c *state.Class, e end, onNodes bool) {
	if r := e.reserved; r != nil {
		p.Evaluator.Tree.Release(r.Class.Queue.Name, quota.Planned, r.Usage)
		if onNodes && r.OnNodes {
			p.Evaluator.Nodes.HoldAs(p.Evaluator.Workloads[r.Rank.Key], state.Placed{})
		}
		return
	}
	w := p.Evaluator.Workloads[e.key]
	p.Evaluator.Tree.Release(w.Charged.Queue.Name, quota.Planned, p.restOf(c, w))
	if onNodes {
		p.without(w.Key, preempt.All)
	}
}

// restOf returns what the workload still has in the present trial, and once it has shrunk for the class.
func (p *Planner) restOf(c *state.Class, w *state.Workload) quota.Vector {
	at := -1
	if w.ListedIn != nil {
		at = w.ResizableSet()
	}
	if at < 0 {
		return w.Charged.Planned
	}
	size := p.sizeOf(w, at)
	if size == 0 {
		return nil
	}
	if w.ListedIn == c.Queue && w.Priority <= c.ClassKey.Priority {
		size = min(size, w.LeastOf(at))
	}
	set := &w.Held.PodSets[at]
	return w.Charged.Planned.Minus(p.Evaluator.Ledgers.VectorOfPods(set, set.Count-size))
}

// keepHoldBacks runs what, and then sets what queues hold back as it was.
func (p *Planner) keepHoldBacks(f *state.Family, what func()) {
	type held struct {
		amounts quota.Vector
		rank    order.Rank
	}
	before := make([]held, len(f.Queues))
	for i, q := range f.Queues {
		before[i] = held{q.HeldBack, q.HeldBackFor}
	}
	what()
	for i, q := range f.Queues {
		q.HeldBack, q.HeldBackFor = before[i].amounts, before[i].rank
	}
}

// fits reports whether the class fits in the present state of the trial, beside what the other queues hold back in that
// state. Within its queue's own quota it may take what is held back for workloads after it, as in a pass.
func (s *search) fits() (fits bool) {
	q := s.class.Queue
	s.planner.keepHoldBacks(q.Family, func() {
		s.planner.Evaluator.Tree.Try(func() {
			holdBacks := state.HoldBacks{Tree: s.planner.Evaluator.Tree}
			holdBacks.ChargeAll(q.Family)
			holdBacks.Release(q)
			fits = s.fitsNow(s.by == calendar.Limits)
			if fits || len(s.class.Own) == 0 {
				return
			}
			later := false
			for _, other := range q.Family.Queues {
				if len(other.HeldBack) > 0 && order.Compare(s.class.Head(), other.HeldBackFor) < 0 {
					holdBacks.Release(other)
					later = true
				}
			}
			fits = later && s.fitsNow(true)
		})
	})
	return fits
}

// fitsNow reports whether the class fits: if owned is set, within its queue's own quota.
func (s *search) fitsNow(owned bool) bool {
	found := s.planner.Evaluator.Evaluate(s.class)
	if found.Verdict != state.Admissible && found.Verdict != state.Nominable ||
		owned && slices.ContainsFunc(found.Choice.Usage, func(a quota.Amount) bool {
			return s.class.Queue.Node.Over(quota.Planned, a.Index, a.Value) > 0
		}) {
		return false
	}
	s.found = found
	return true
}

// first returns the index of the first bound after which the class fits, negative if it fits after none.
func (s *search) first() int {
	from, to := -1, -1 // it does not fit after from, and fits after to
	for step := 1; to < 0; step *= 2 {
		at := min(from+step, len(s.bounds)-1)
		if at == from {
			return -1
		}
		if s.fitsAfter(s.upTo(from), s.upTo(at)) {
			to = at
		} else {
			s.release(s.ends[s.upTo(from):s.upTo(at)])
			from = at
		}
	}
	for to-from > 1 {
		mid := from + (to-from)/2
		if s.fitsAfter(s.upTo(from), s.upTo(mid)) {
			to = mid
		} else {
			s.release(s.ends[s.upTo(from):s.upTo(mid)])
			from = mid
		}
	}
	s.release(s.ends[s.upTo(from):s.upTo(to)])
	if !s.fits() { // more free capacity need not mean more places
		return -1
	}
	return to
}

// upTo returns how many ends there are up to the bound at the index, 0 for none.
func (s *search) upTo(at int) int {
	if at < 0 {
		return 0
	}
	return s.bounds[at]
}

// fitsAfter reports whether the class fits after these ends, beside those before them, which were released already.
func (s *search) fitsAfter(from, to int) (fits bool) {
	ev := s.planner.Evaluator
	ev.Tree.Try(func() {
		ev.Nodes.Places.Try(func() {
			s.release(s.ends[from:to])
			fits = s.fits()
		})
	})
	return fits
}

// mostNamed bounds how many workloads a reservation names that it waits for.
const mostNamed = 8

// reservation returns the start that was found after these ends.
func (s *search) reservation(ends []end) *state.Reservation {
	r := &state.Reservation{Class: s.class, Rank: s.class.Head(), At: ends[len(ends)-1].at, By: s.by,
		Given: s.found.Choice.Assignments, Usage: s.found.Choice.Usage}
	given := &model.Admission{PodSets: r.Given}
	r.OnNodes = given.OnNodes()
	for _, e := range slices.Backward(ends) {
		if len(r.After) < mostNamed && e.reserved == nil {
			r.After = append(r.After, e.key)
		}
	}
	slices.Reverse(r.After)
	return r
}
