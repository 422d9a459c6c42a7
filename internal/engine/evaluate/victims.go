package evaluate

import (
	"slices"

	"github.com/musterhq/muster/internal/engine/flavor"
	"github.com/musterhq/muster/internal/engine/place"
	"github.com/musterhq/muster/internal/engine/preempt"
	"github.com/musterhq/muster/internal/engine/quota"
	"github.com/musterhq/muster/internal/engine/state"
)

// QuestionOf returns the parameters of a flavor assignment for the workload.
func (ev *Evaluator) QuestionOf(w *state.Workload, q *state.ClusterQueue) flavor.Question {
	return flavor.Question{
		Queue: q.Node, Fungibility: q.Fungibility,
		MayPreempt: func(i quota.Index, amount int64) bool { return MayPreempt(q, i, amount) },
		Preempt:    func(i quota.Index, amount int64) (flavor.Mode, int) { return ev.couldPreempt(w, q, i, amount) },
	}
}

// victims returns the workloads to evict so that the workload can have the amounts.
func (ev *Evaluator) victims(w *state.Workload, q *state.ClusterQueue, usage quota.Vector,
	short []quota.Index) []preempt.Victim {
	return ev.VictimsOf(ev.Preemptor(w, q, usage, short))
}

// Preemptor describes the workload as one that wants the amounts, some of which are short.
func (ev *Evaluator) Preemptor(w *state.Workload, q *state.ClusterQueue, usage quota.Vector,
	short []quota.Index) preempt.Preemptor {
	return preempt.Preemptor{
		Queue: q.Node, Policy: q.Preemption, Priority: w.Priority, QueuedAt: w.QueuedAt, Usage: usage, Short: short,
		Spared: ev.Precedence.Over(w.Key), Fair: ev.strategies(), Ranking: &ev.Ranking, StandingOf: ev.queueStanding,
	}
}

// VictimsOf returns the victims of a preemptor.
func (ev *Evaluator) VictimsOf(p preempt.Preemptor) []preempt.Victim {
	if ev.Planning {
		return nil
	}
	return preempt.Search(ev.Tree, p, ev.HoldersOf)
}

// HoldersOf is preempt.Holders.
func (ev *Evaluator) HoldersOf(n *quota.Node) (holders []*preempt.Holder, elastic bool) {
	q := ev.Queues[n.Name()]
	return q.Holders, q.ElasticHolders > 0
}

// couldPreempt returns how well one amount would fit if nothing else were short, and the level that it would then be
// borrowed from, as in Choice.Borrowing.
func (ev *Evaluator) couldPreempt(w *state.Workload, q *state.ClusterQueue, i quota.Index,
	amount int64) (m flavor.Mode, borrowing int) {
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
func (ev *Evaluator) borrowingWithout(q *state.ClusterQueue, usage quota.Vector,
	victims []preempt.Victim) (height int) {
	ev.Tree.Try(func() {
		for _, v := range victims {
			ev.Tree.Release(v.Queue.Name(), quota.Planned, v.Releases())
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

// MayPreempt reports whether the queue's workloads may evict others for the amount. Beyond the queue's own quota they
// may do so only if they may preempt while borrowing, which under fair sharing is like any other reclaim, or if a
// cohort below the root has that much quota. What the queue does not name does not matter: the search for victims asks
// whether it is within what it names.
func MayPreempt(q *state.ClusterQueue, i quota.Index, amount int64) bool {
	whileBorrowing := q.Preemption.MayWhileBorrowing() || q.Fairly && q.Preemption.Reclaim != preempt.Never
	return q.Preemption.Allows() && (whileBorrowing || !q.Node.Names(i) || withinBelowRoot(q.Node, i, amount))
}

// ShortOf returns the amounts that do not fit even once all evicted workloads are gone.
func ShortOf(n *quota.Node, v quota.Vector) []quota.Index {
	var short []quota.Index
	for _, a := range v {
		if n.Available(quota.Planned, a.Index) < a.Value {
			short = append(short, a.Index)
		}
	}
	return short
}

// preempting returns the outcome of a choice for which the victims stop or shrink.
func (ev *Evaluator) preempting(q *state.ClusterQueue, choice flavor.Choice, victims []preempt.Victim) Outcome {
	choice.Borrowing = ev.borrowingWithout(q, choice.Usage, victims)
	out := Outcome{Verdict: state.Preempting, Choice: choice}
	for _, v := range victims {
		if v.Stops() {
			out.Victims = append(out.Victims, v)
			continue
		}
		out.shrinksEquals = out.shrinksEquals || v.Equal
		w := ev.Workloads[v.Key]
		at := w.ElasticSet()
		out.Yields = append(out.Yields,
			state.Yield{Workload: w, At: at, Given: w.Held.Sized(at, w.Held.PodSets[at].Count-v.Gives, nil)})
	}
	return out
}

// MayEvict reports whether the rules let a workload with a nomination evict the one that holds quota, whatever else
// does.
func (ev *Evaluator) MayEvict(by, w *state.Workload) bool {
	h := &preempt.Holder{Key: w.Key, Priority: w.Priority, QueuedAt: w.QueuedAt}
	ev.Ledgers.SetSpare(w, h)
	p := ev.Preemptor(by, by.ClusterQueue, by.Nomination.Usage, nil)
	return w.ClusterQueue.Node != nil && p.MayEvict(h, w.ClusterQueue.Node)
}

// SearchOnNodes returns the victims without which there are both quota and places, and the places; nil if there are
// none.
func (ev *Evaluator) SearchOnNodes(p preempt.Preemptor,
	asks []place.Ask) (victims []preempt.Victim, places []place.Assignment) {
	room := &NodeCapacity{Evaluator: ev, find: func() ([]place.Ask, []place.Assignment, bool) {
		found, ok := ev.Nodes.Finder.TryFind(asks, place.Planned)
		return asks, found, ok
	}}
	return room.victims(p), room.found
}

// NodeCapacity checks places for a search for victims.
type NodeCapacity struct {
	Evaluator *Evaluator
	// find looks for capacity in the planned ledger.
	find func() ([]place.Ask, []place.Assignment, bool)
	// found is where there was capacity last, and asks for what; searches counts the searches for it.
	asks     []place.Ask
	found    []place.Assignment
	searches int
}

// victims returns the victims without which there are both quota and places, none if there are none.
func (n *NodeCapacity) victims(p preempt.Preemptor) (victims []preempt.Victim) {
	p.Nodes = n
	n.Evaluator.Nodes.Places.Try(func() {
		victims = n.Evaluator.VictimsOf(p)
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
func (n *NodeCapacity) Try(f func()) { n.Evaluator.Nodes.Places.Try(f) }

// Without implements preempt.NodeCapacity.
func (n *NodeCapacity) Without(h *preempt.Holder, pods int32) {
	w := n.Evaluator.Workloads[h.Key]
	has := w.Placed
	switch at := w.ElasticSet(); {
	case pods == 0:
	case pods < preempt.All:
		if !w.Held.OnNodes() && n.Evaluator.Nodes.PodCounts[w.Key] == 0 {
			return
		}
		has = state.Placed{By: w.Held.Sized(at, w.Held.PodSets[at].Count-pods, nil)}
	case has.By == nil && w.Held != nil:
		has = state.Placed{By: w.Held, Leaving: true} // its pods may be on nodes all the same
	case has.Nominated:
		has = n.Evaluator.Nodes.LeftoverPods(w)
	default:
		has.Leaving = true
	}
	n.Evaluator.Nodes.Places.Hold(h.Key, n.Evaluator.Nodes.Holding(w, has))
}

// Fits implements preempt.NodeCapacity.
func (n *NodeCapacity) Fits() bool {
	if n.found != nil && n.Evaluator.Nodes.Finder.FitsAt(n.asks, n.found, place.Planned) {
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

// VictimsForReplacement returns the outcome in which others stop or shrink for the workload's replacement, and its new
// places. The search treats the workload as if it asked for all that it holds: its rights are those of a waiting one.
func (ev *Evaluator) VictimsForReplacement(w *state.Workload) (out Outcome, gained []place.Assignment) {
	if w.ClusterQueue == nil || w.ClusterQueue.Node == nil || w.Charged.Queue != w.ClusterQueue {
		return out, nil
	}
	usage := ev.Ledgers.VectorOf(w.Held)
	room := &NodeCapacity{Evaluator: ev, find: func() ([]place.Ask, []place.Assignment, bool) {
		found, ok := ev.Nodes.Finder.RepairOnceGone(w.Key)
		return ev.Nodes.ReplacementAsks(w, found.Gained), found.Gained, ok
	}}
	ev.Tree.Try(func() {
		ev.Tree.Release(w.ClusterQueue.Name, quota.Planned, w.Charged.Planned)
		if slices.ContainsFunc(usage, func(a quota.Amount) bool { return !MayPreempt(w.ClusterQueue, a.Index, a.Value) }) {
			return
		}
		by := ev.Preemptor(w, w.ClusterQueue, usage, usage.Indices())
		by.Spared, by.Ranking = by.Spared.Clone().Insert(w.Key), nil
		out = ev.preempting(w.ClusterQueue, flavor.Choice{}, room.victims(by))
	})
	return out, room.found
}
