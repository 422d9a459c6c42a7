package engine

import (
	"slices"

	"github.com/musterhq/muster/internal/engine/flavor"
	"github.com/musterhq/muster/internal/engine/place"
	"github.com/musterhq/muster/internal/engine/preempt"
	"github.com/musterhq/muster/internal/engine/quota"
	"github.com/musterhq/muster/internal/engine/state"
)

// questionOf returns the parameters of a flavor assignment for the workload.
func (ev *evaluator) questionOf(w *state.Workload, q *state.ClusterQueue) flavor.Question {
	return flavor.Question{
		Queue: q.Node, Fungibility: q.Fungibility,
		MayPreempt: func(i quota.Index, amount int64) bool { return mayPreempt(q, i, amount) },
		Preempt:    func(i quota.Index, amount int64) (flavor.Mode, int) { return ev.couldPreempt(w, q, i, amount) },
	}
}

// victims returns the workloads to evict so that the workload can have the amounts.
func (ev *evaluator) victims(w *state.Workload, q *state.ClusterQueue, usage quota.Vector, short []quota.Index) []preempt.Victim {
	return ev.victimsOf(ev.preemptor(w, q, usage, short))
}

// preemptor describes the workload as one that wants the amounts, some of which are short.
func (ev *evaluator) preemptor(w *state.Workload, q *state.ClusterQueue, usage quota.Vector, short []quota.Index) preempt.Preemptor {
	return preempt.Preemptor{
		Queue: q.Node, Policy: q.Preemption, Priority: w.Priority, QueuedAt: w.QueuedAt, Usage: usage, Short: short,
		Spared: ev.precedence.Over(w.Key), Fair: ev.strategies(), Ranking: &ev.ranking, StandingOf: ev.queueStanding,
	}
}

// victimsOf returns the victims of a preemptor.
func (ev *evaluator) victimsOf(p preempt.Preemptor) []preempt.Victim {
	return preempt.Search(ev.tree, p, ev.holdersOf)
}

// holdersOf is preempt.Holders.
func (ev *evaluator) holdersOf(n *quota.Node) (holders []*preempt.Holder, elastic bool) {
	q := ev.queues[n.Name()]
	return q.Holders, q.ElasticHolders > 0
}

// couldPreempt returns how well one amount would fit if nothing else were short, and the level that it would then be
// borrowed from, as in Choice.Borrowing.
func (ev *evaluator) couldPreempt(w *state.Workload, q *state.ClusterQueue, i quota.Index, amount int64) (m flavor.Mode, borrowing int) {
	wanted := quota.VectorOf(quota.Amount{Index: i, Value: amount})
	victims := ev.victims(w, q, wanted, []quota.Index{i})
	switch {
	case len(victims) == 0:
		return flavor.Blocked, q.Node.Borrows(quota.Planned, i, amount)
	case slices.ContainsFunc(victims, func(v preempt.Victim) bool { return v.Cause != preempt.InQueue }):
		m = flavor.Reclaims
	default:
		m = flavor.Preempts
	}
	return m, ev.borrowingWithout(q, wanted, victims)
}

// borrowingWithout returns the level, as in Choice.Borrowing, from which the queue borrows the amounts once the
// victims are gone.
func (ev *evaluator) borrowingWithout(q *state.ClusterQueue, usage quota.Vector, victims []preempt.Victim) (height int) {
	ev.tree.Try(func() {
		for _, v := range victims {
			ev.tree.Release(v.Queue.Name(), quota.Planned, v.Releases())
		}
		named := q.Node.NamesAny(usage)
		for _, a := range usage {
			if !named || q.Node.Names(a.Index) {
				height = max(height, q.Node.Borrows(quota.Planned, a.Index, a.Value))
			}
		}
	})
	return height
}

// withinBelowRoot reports whether the quota of the queue, or of a cohort above it other than the root, is at least
// the amount.
func withinBelowRoot(n *quota.Node, i quota.Index, amount int64) bool {
	for ; ; n = n.Parent() {
		if (n.IsQueue() || n.Parent() != nil) && n.Quota(i) >= amount {
			return true
		}
		if n.Parent() == nil {
			return false
		}
	}
}

// mayPreempt reports whether the queue's workloads may evict others for the amount. Beyond the queue's own quota they
// may do so only if they may preempt while borrowing, which under fair sharing is like any other reclaim, or if a
// cohort below the root has that much quota. What the queue does not name does not matter: the search for victims asks
// whether it is within what it names.
func mayPreempt(q *state.ClusterQueue, i quota.Index, amount int64) bool {
	whileBorrowing := q.Preemption.MayWhileBorrowing() || q.Fairly && q.Preemption.Reclaim != preempt.Never
	return q.Preemption.Allows() && (whileBorrowing || !q.Node.Names(i) || withinBelowRoot(q.Node, i, amount))
}

// shortOf returns the amounts that do not fit even once all evicted workloads are gone.
func shortOf(n *quota.Node, v quota.Vector) []quota.Index {
	var short []quota.Index
	for _, a := range v {
		if n.Available(quota.Planned, a.Index) < a.Value {
			short = append(short, a.Index)
		}
	}
	return short
}

// preempting returns the outcome of a choice for which the victims stop or shrink.
func (ev *evaluator) preempting(q *state.ClusterQueue, choice flavor.Choice, victims []preempt.Victim) outcome {
	choice.Borrowing = ev.borrowingWithout(q, choice.Usage, victims)
	out := outcome{verdict: state.Preempting, choice: choice}
	for _, v := range victims {
		if v.Stops() {
			out.victims = append(out.victims, v)
			continue
		}
		out.shrinksEquals = out.shrinksEquals || v.Equal
		w := ev.workloads[v.Key]
		at := w.ElasticSet()
		out.yields = append(out.yields, state.Yield{Workload: w, At: at, Given: w.Held.Sized(at, w.Held.PodSets[at].Count-v.Gives, nil)})
	}
	return out
}

// mayEvict reports whether the rules let a workload with a promise evict the one that holds quota, whatever else does.
func (ev *evaluator) mayEvict(by, w *state.Workload) bool {
	h := &preempt.Holder{Key: w.Key, Priority: w.Priority, QueuedAt: w.QueuedAt}
	ev.ledgers.SetSpare(w, h)
	p := ev.preemptor(by, by.ClusterQueue, by.Nomination.Usage, nil)
	return w.ClusterQueue.Node != nil && p.MayEvict(h, w.ClusterQueue.Node)
}

// searchOnNodes returns the victims without which there are both quota and places, and the places; nil if there are
// none.
func (ev *evaluator) searchOnNodes(p preempt.Preemptor, asks []place.Ask) (victims []preempt.Victim, places []place.Assignment) {
	room := &nodeCapacity{evaluator: ev, find: func() ([]place.Ask, []place.Assignment, bool) {
		found, ok := ev.nodes.Finder.TryFind(asks, place.Planned)
		return asks, found, ok
	}}
	return room.victims(p), room.found
}

// nodeCapacity checks places for a search for victims.
type nodeCapacity struct {
	evaluator *evaluator
	// find looks for capacity in the planned ledger.
	find func() ([]place.Ask, []place.Assignment, bool)
	// found is where there was capacity last, and asks for what; searches counts the searches for it.
	asks     []place.Ask
	found    []place.Assignment
	searches int
}

// victims returns the victims without which there are both quota and places, none if there are none.
func (n *nodeCapacity) victims(p preempt.Preemptor) (victims []preempt.Victim) {
	p.Nodes = n
	n.evaluator.nodes.Places.Try(func() {
		victims = n.evaluator.victimsOf(p)
		for i := range victims {
			n.Without(victims[i].Holder, victims[i].Without())
		}
		if len(victims) > 0 && !n.Fits() {
			victims = nil
		}
	})
	return victims
}

// maxSearches bounds the time of one search for victims. After that, victims are spared only if the places found
// last remain available.
const maxSearches = 64

// Try implements preempt.NodeCapacity.
func (n *nodeCapacity) Try(f func()) { n.evaluator.nodes.Places.Try(f) }

// Without implements preempt.NodeCapacity.
func (n *nodeCapacity) Without(h *preempt.Holder, pods int32) {
	w := n.evaluator.workloads[h.Key]
	has := w.Placed
	switch at := w.ElasticSet(); {
	case pods == 0:
	case pods < preempt.All:
		if !w.Held.OnNodes() && n.evaluator.nodes.PodCounts[w.Key] == 0 {
			return
		}
		has = state.Placed{By: w.Held.Sized(at, w.Held.PodSets[at].Count-pods, nil)}
	case has.By == nil && w.Held != nil:
		has = state.Placed{By: w.Held, Leaving: true} // its pods may be on nodes all the same
	case has.Nominated:
		has = n.evaluator.nodes.LeftoverPods(w)
	default:
		has.Leaving = true
	}
	n.evaluator.nodes.Places.Hold(h.Key, n.evaluator.nodes.Holding(w, has))
}

// Fits implements preempt.NodeCapacity.
func (n *nodeCapacity) Fits() bool {
	if n.found != nil && n.evaluator.nodes.Finder.FitsAt(n.asks, n.found, place.Planned) {
		return true
	}
	if n.searches == maxSearches {
		return false
	}
	n.searches++
	asks, found, ok := n.find()
	if ok {
		n.asks, n.found = asks, found
	}
	return ok
}

// victimsForReplacement returns the outcome in which others stop or shrink for the workload's replacement, and its new
// places. The search treats the workload as if it asked for all that it holds: its rights are those of a waiting one.
func (ev *evaluator) victimsForReplacement(w *state.Workload) (out outcome, gained []place.Assignment) {
	if w.ClusterQueue == nil || w.ClusterQueue.Node == nil || w.Charged.Queue != w.ClusterQueue {
		return out, nil
	}
	usage := ev.ledgers.VectorOf(w.Held)
	room := &nodeCapacity{evaluator: ev, find: func() ([]place.Ask, []place.Assignment, bool) {
		found, ok := ev.nodes.Finder.RepairOnceGone(w.Key)
		return ev.nodes.ReplacementAsks(w, found.Gained), found.Gained, ok
	}}
	ev.tree.Try(func() {
		ev.tree.Release(w.ClusterQueue.Name, quota.Planned, w.Charged.Planned)
		if slices.ContainsFunc(usage, func(a quota.Amount) bool { return !mayPreempt(w.ClusterQueue, a.Index, a.Value) }) {
			return
		}
		by := ev.preemptor(w, w.ClusterQueue, usage, usage.Indices())
		by.Spared, by.Ranking = by.Spared.Clone().Insert(w.Key), nil
		out = ev.preempting(w.ClusterQueue, flavor.Choice{}, room.victims(by))
	})
	return out, room.found
}
