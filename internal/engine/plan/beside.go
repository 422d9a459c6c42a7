package plan

import (
	"math"
	"slices"
	"time"

	"github.com/musterhq/muster/internal/engine/durations"
	"github.com/musterhq/muster/internal/engine/evaluate"
	"github.com/musterhq/muster/internal/engine/model"
	"github.com/musterhq/muster/internal/engine/order"
	"github.com/musterhq/muster/internal/engine/place"
	"github.com/musterhq/muster/internal/engine/preempt"
	"github.com/musterhq/muster/internal/engine/quota"
	"github.com/musterhq/muster/internal/engine/state"
)

// A workload passes a planned start if it has ended by then, if the other one may evict it, or if both fit at that
// time. A promise is passed by limits alone.

// passer is a workload that may start, or grow, before a planned start.
type passer struct {
	w     *state.Workload
	queue *state.ClusterQueue
	rank  order.Rank
	lasts durations.Forecast
	// startsNow is set if it waits for nothing; since is when it has started, or now.
	startsNow bool
	since     time.Time
	usage     quota.Vector
	given     []model.Assignment
	onNodes   bool
	// grows is set if the workload runs already, and wants more.
	grows bool
}

// MayDelay implements evaluate.Starts.
func (p *Planner) MayDelay(c *state.Class) bool { return p.anyPlanned(c.Queue.Family) }

// anyPlanned reports whether a start is planned that workloads of the family may delay.
func (p *Planner) anyPlanned(f *state.Family) bool { return len(f.Reserved) > 0 || len(p.Reserved) > 0 }

// Delayed implements evaluate.Starts.
func (p *Planner) Delayed(w *state.Workload, c *state.Class, found *evaluate.Outcome) *state.Reservation {
	p.Runs.Forecast(w)
	of := passer{w: w, queue: c.Queue, rank: c.Head(), lasts: w.Forecast, startsNow: p.startsNow(c, found),
		since: p.Runs.Now, usage: found.Choice.Usage, given: found.Choice.Assignments}
	of.onNodes = onNodes(of.given)
	return p.delayedBy(&of)
}

// startsNow reports whether a workload of the class would start at once: it waits neither for the pods of others to
// end, nor for others to shrink, nor for admission checks. Else nobody knows when its limit begins to count.
func (p *Planner) startsNow(c *state.Class, found *evaluate.Outcome) bool {
	return found.Verdict == state.Admissible && p.Evaluator.YieldingIn == nil &&
		len(c.Queue.ChecksFor(&model.Admission{ClusterQueue: c.Queue.Name, PodSets: found.Choice.Assignments})) == 0
}

func onNodes(given []model.Assignment) bool { return (&model.Admission{PodSets: given}).OnNodes() }

// DelayedByGrowth reports whether the running workload would delay a planned start with this number of pods more, on
// these nodes.
func (p *Planner) DelayedByGrowth(w *state.Workload, at int, pods int32, more []place.NodeCount) bool {
	f := w.ClusterQueue.Family
	if f == nil || !p.anyPlanned(f) {
		return false
	}
	set := &w.Held.PodSets[at]
	grown := w.Held.Sized(at, set.Count+pods, more)
	of := passer{w: w, queue: w.ClusterQueue, lasts: w.Forecast, startsNow: true, since: w.StartedAt(),
		usage: p.Evaluator.Ledgers.VectorOfPods(set, pods), given: grown.PodSets, onNodes: onNodes(grown.PodSets),
		grows: true}
	of.rank = order.Rank{Priority: math.MinInt32, Since: p.Runs.Now.Add(time.Hour)} // whoever waits comes before growth
	return p.delayedBy(&of) != nil
}

func (p *Planner) delayedBy(of *passer) *state.Reservation {
	for r := range p.binding(of.queue.Family, of.rank, of.onNodes) {
		if p.delays(of, r) {
			return r
		}
	}
	return nil
}

// Precedes reports whether the first workload comes before the second one where starts are planned: as in the order of
// queues, but of equals one with a promise comes first. Each start depends only on those before it, in all families
// that share nodes: if two depended on each other, planning would never end.
func (p *Planner) Precedes(a, b order.Rank) bool {
	if !a.Outranks(b) && !b.Outranks(a) {
		if first, second := p.IsPromised(a.Key), p.IsPromised(b.Key); first != second {
			return first
		}
	}
	return order.Compare(a, b) < 0
}

// IsPromised reports whether the workload has a promise that can be kept.
func (p *Planner) IsPromised(key order.Key) bool {
	w := p.Evaluator.Workloads[key]
	return w != nil && w.HasPromise()
}

// binding yields the reservations for workloads before this rank that bind a workload of the family.
func (p *Planner) binding(f *state.Family, rank order.Rank, onNodes bool) func(yield func(*state.Reservation) bool) {
	return func(yield func(*state.Reservation) bool) {
		for _, r := range f.Reserved {
			if p.Precedes(r.Rank, rank) && !yield(r) {
				return
			}
		}
		for _, r := range p.Reserved {
			if onNodes && r.Class.Queue.Family != f && p.Precedes(r.Rank, rank) && !yield(r) {
				return
			}
		}
	}
}

// delays reports whether the workload would delay the planned start.
func (p *Planner) delays(of *passer, r *state.Reservation) bool {
	if of.w.HasPromise() && !p.IsPromised(r.Rank.Key) {
		return false // a start that is only expected delays no promise
	}
	return r.IsWaiting(p.Evaluator.Workloads) && r.Rank.Key != of.w.Key &&
		!of.yieldsTo(r) && !p.endsBefore(of, r) && !p.isTakenBack(of, r) && !p.fitsBeside(of, r)
}

// yieldsTo reports whether the workload only grows, and gives that up for the workload of the planned start.
func (pa *passer) yieldsTo(r *state.Reservation) bool {
	return pa.grows && pa.queue == r.Class.Queue && pa.w.Priority <= r.Rank.Priority
}

// leastFor returns what the workload still has once it has shrunk for the planned start.
func (p *Planner) leastFor(of *passer, r *state.Reservation) (quota.Vector, []model.Assignment) {
	if of.grows || !of.w.Shape.Elastic || of.queue != r.Class.Queue || of.w.Priority > r.Rank.Priority {
		return of.usage, of.given
	}
	least := &model.Admission{PodSets: of.given}
	for i := range of.w.PodSets {
		ps := &of.w.PodSets[i]
		at := slices.IndexFunc(of.given, func(a model.Assignment) bool { return a.PodSet == ps.Name })
		if ps.Elastic > 0 && at >= 0 && of.given[at].Count > ps.Least() {
			least = least.Sized(at, ps.Least(), nil)
			least.PodSets[at].Surplus = nil
		}
	}
	return p.Evaluator.Ledgers.VectorOf(least), least.PodSets
}

// startOf returns the time that nobody may delay: that of the planned start, or, as long as the promise can be kept,
// the promised one. By the ends of others the start may be later: those who are taken back for it run until then.
func (p *Planner) startOf(r *state.Reservation) time.Time {
	if w := p.Evaluator.Workloads[r.Rank.Key]; w != nil && w.HasPromise() && w.Promised.At.Before(r.At) {
		return w.Promised.At
	}
	return r.At
}

// endsBefore reports whether the workload has ended by the planned start.
func (p *Planner) endsBefore(of *passer, r *state.Reservation) bool {
	if r.IsPromise() {
		return of.startsNow && of.lasts.Limit > 0 && !of.since.Add(of.lasts.Limit).After(p.startOf(r))
	}
	ends, _ := of.lasts.Ends(of.since, p.Runs.Now)
	return !ends.After(p.startOf(r))
}

// isTakenBack reports whether the workload of the planned start may evict the other one under the rules of its queue. A
// promise relies on that only within the queue: what is borrowed now may not be borrowed any more when the time has
// come, and then cannot be reclaimed.
func (p *Planner) isTakenBack(of *passer, r *state.Reservation) bool {
	by := p.Evaluator.Workloads[r.Rank.Key]
	q := r.Class.Queue
	if !q.Preemption.Allows() || q.Family != of.queue.Family || r.IsPromise() && of.queue != q {
		return false
	}
	holder := &preempt.Holder{Key: of.w.Key, Priority: of.w.Priority, QueuedAt: of.w.QueuedAt, ReservedAt: p.Runs.Now,
		Usage: of.usage}
	wants := p.Evaluator.Preemptor(by, q, r.Usage, r.Usage.Indices())
	return !slices.ContainsFunc(r.Usage, func(a quota.Amount) bool { return !evaluate.MayPreempt(q, a.Index, a.Value) }) &&
		wants.MayEvict(holder, of.queue.Node)
}

// fitsBeside reports whether the planned start is possible at its time although the workload still runs.
func (p *Planner) fitsBeside(of *passer, r *state.Reservation) (fits bool) {
	f := r.Class.Queue.Family
	shares := of.queue.Family == f
	if !shares && !r.OnNodes {
		return true
	}
	before := p.Before(r.Class, f.Reserved[:slices.Index(f.Reserved, r)])
	onNodes := r.OnNodes
	usage, given := p.leastFor(of, r)
	p.try(r.Class, func() {
		ev := p.Evaluator
		if shares {
			ev.Tree.Charge(of.queue.Name, quota.Planned, usage)
		}
		if onNodes && of.onNodes {
			p.hold(of.w, given)
		}
		p.reserve(before, onNodes)
		p.shrink(r.Class)
		p.endBy(r, before, onNodes)
		s := search{planner: p, class: r.Class, by: r.By}
		fits = s.fits()
	})
	return fits
}

// Before returns the reservations that the head of the class comes behind: the given ones of its family, and those of
// other families on the same nodes whose workloads come before it.
func (p *Planner) Before(c *state.Class, family []*state.Reservation) (out []*state.Reservation) {
	for _, r := range family {
		if r.IsWaiting(p.Evaluator.Workloads) {
			out = append(out, r)
		}
	}
	if len(p.Reserved) == 0 || !p.Evaluator.FormOf(c).OnNodes() {
		return out
	}
	for _, r := range p.Reserved {
		if r.Class.Queue.Family != c.Queue.Family && p.Precedes(r.Rank, c.Head()) &&
			r.IsWaiting(p.Evaluator.Workloads) {
			out = append(out, r)
		}
	}
	return out
}

// endBy lets all end that end by the planned start.
func (p *Planner) endBy(r *state.Reservation, before []*state.Reservation, onNodes bool) {
	f, at := r.Class.Queue.Family, p.startOf(r)
	if !onNodes && len(before) == 0 && len(r.Class.Queue.Elastic) == 0 {
		for node, amounts := range p.releasedBy(r, at) {
			node.Release(quota.Planned, amounts)
		}
		return
	}
	for _, e := range p.endsOf(f, onNodes, r.By, before) {
		if e.at.After(at) {
			return
		}
		p.Evaluator.Tried++
		p.release(r.Class, e, onNodes)
	}
}

// releasedCache has what has ended by a planned start, by queue, so that it is added up once for many who want to pass.
type releasedCache struct {
	of       *state.Reservation
	at       time.Time
	charges  int
	calendar int
	amounts  map[*quota.Node]quota.Vector
}

// releasedBy returns what those release in all that end by the time.
func (p *Planner) releasedBy(r *state.Reservation, by time.Time) map[*quota.Node]quota.Vector {
	f := r.Class.Queue.Family
	now := releasedCache{of: r, at: by, charges: f.Waits.Charges(), calendar: f.Calendar.Version()}
	if known := &p.released; known.of == now.of && known.at.Equal(by) && known.charges == now.charges &&
		known.calendar == now.calendar {
		return known.amounts
	}
	sums := map[*quota.Node]map[quota.Index]int64{}
	for _, e := range f.Calendar.InOrder(r.By) {
		if e.End(r.By).After(by) {
			break
		}
		w := p.Evaluator.Workloads[e.Key]
		node := w.Charged.Queue.Node
		if sums[node] == nil {
			sums[node] = map[quota.Index]int64{}
		}
		for _, a := range w.Charged.Planned {
			sums[node][a.Index] = quota.Add(sums[node][a.Index], a.Value)
		}
	}
	now.amounts = map[*quota.Node]quota.Vector{}
	for node, amounts := range sums {
		now.amounts[node] = state.VectorOfSums(amounts)
	}
	p.released = now
	return now.amounts
}

// Beside implements evaluate.Starts.
func (p *Planner) Beside(c *state.Class, what func()) {
	ev := p.Evaluator
	ev.Tree.Try(func() {
		ev.Nodes.Places.Try(func() {
			for r := range p.binding(c.Queue.Family, c.Head(), true) {
				if r.IsWaiting(ev.Workloads) && r.Rank.Key != c.Head().Key {
					ev.Tree.Charge(r.Class.Queue.Name, quota.Planned, r.Usage)
					p.hold(ev.Workloads[r.Rank.Key], r.Given)
				}
			}
			what()
		})
	})
}

// forecastOf returns how long the workload of the reservation runs.
func (p *Planner) forecastOf(r *state.Reservation) durations.Forecast {
	return p.Evaluator.Workloads[r.Rank.Key].Forecast
}
