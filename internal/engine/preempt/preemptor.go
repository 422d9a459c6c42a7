package preempt

import (
	"slices"
	"sort"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/musterhq/muster/internal/engine/fair"
	"github.com/musterhq/muster/internal/engine/order"
	"github.com/musterhq/muster/internal/engine/quota"
)

// Preemptor is the workload that needs capacity.
type Preemptor struct {
	Queue    *quota.Node
	Policy   Policy
	Priority int32
	QueuedAt time.Time
	// Usage is all that it will hold, Short the part of it that is not available.
	Usage quota.Vector
	Short []quota.Index
	// Spared must not be evicted regardless of the policy.
	Spared sets.Set[order.Key]
	// StandingOf returns the Standing of a queue; nil if all have the default.
	StandingOf func(queue *quota.Node) Standing
	// Nodes checks capacity on nodes; nil if only quota matters.
	Nodes NodeCapacity
	// Fair are the strategies of fair sharing, none if it is off.
	Fair []Strategy
	// Ranking speeds up searches with fair sharing on the same tree. It may be nil.
	Ranking *fair.Ranking
}

// may reports whether the rule lets the preemptor evict the holder.
func (p *Preemptor) may(rule Rule, h *Holder) bool {
	switch rule {
	case LowerPriority:
		return h.Priority < p.Priority
	case LowerOrNewerEqualPriority:
		return h.Priority < p.Priority || h.Priority == p.Priority && p.QueuedAt.Before(h.QueuedAt)
	case Any:
		return true
	default:
		return false
	}
}

// MayEvict reports whether the policies let the preemptor evict the holder of that queue at any usage of their quota.
func (p *Preemptor) MayEvict(h *Holder, queue *quota.Node) bool {
	switch {
	case queue == p.Queue:
		return p.mayStop(h)
	case queue.Root() != p.Queue.Root():
		return false
	case len(p.Fair) > 0:
		return p.may(p.Policy.Reclaim, h) && !p.standingOf(queue).Protected
	}
	_, may := p.classOf(h, p.standingOf(queue), true)
	return may
}

// mayStop reports whether a holder of the same queue may be stopped.
func (p *Preemptor) mayStop(h *Holder) bool {
	return p.may(p.Policy.WithinQueue, h) || h.Pod != nil && h.Priority < p.Priority
}

// mayOnlyShrink reports whether a holder of the same queue may shrink by what it can spare, but not be stopped.
func (p *Preemptor) mayOnlyShrink(h *Holder) bool {
	return !p.mayStop(h) && h.Spare > 0 && h.Priority == p.Priority
}

// reachedBy returns the holders without those at the end whose priority the rule does not reach.
func (p *Preemptor) reachedBy(rule Rule, holders []*Holder) []*Holder {
	return holders[:sort.Search(len(holders), func(n int) bool {
		switch h := holders[n]; {
		case h.Nominated: // these come first, whatever their priority
			return false
		case rule == Never:
			return true
		case rule == LowerPriority:
			return h.Priority >= p.Priority
		case rule == LowerOrNewerEqualPriority:
			return h.Priority > p.Priority
		default:
			return false
		}
	})]
}

// ruleTowards returns a rule that reaches all that may be evicted of a queue of that standing.
func (p *Preemptor) ruleTowards(of Standing) Rule {
	switch {
	case of.Rank < p.Policy.Rank:
		return Any
	case p.Policy.WhileBorrowing:
		return max(p.Policy.Reclaim, LowerPriority)
	default:
		return p.Policy.Reclaim
	}
}

// standingOf returns the Standing of a queue.
func (p *Preemptor) standingOf(queue *quota.Node) Standing {
	if p.StandingOf == nil {
		return Standing{}
	}
	return p.StandingOf(queue)
}

// classOf returns why a holder of another queue, of that standing, may be evicted; ok is false if it may not be.
// entitled says that the preemptor's part of the cohort is within its quota.
func (p *Preemptor) classOf(h *Holder, of Standing, entitled bool) (c class, ok bool) {
	lowEnough := p.Policy.WhileBorrowing && h.Priority < p.Priority &&
		(p.Policy.Threshold == nil || h.Priority <= *p.Policy.Threshold)
	reclaimable := p.may(p.Policy.Reclaim, h)
	switch {
	case of.Protected:
		return 0, false
	case entitled && reclaimable:
		return owed, true
	case of.Rank > p.Policy.Rank:
		return 0, false
	case lowEnough, of.Rank < p.Policy.Rank:
		return whileBorrowing, true
	case reclaimable:
		return unlessBorrowing, true
	}
	return 0, false
}

// helps reports whether the holder has any of what is short, and is not spared.
func (p *Preemptor) helps(h *Holder) bool {
	return !p.Spared.Has(h.Key) && slices.ContainsFunc(p.Short, func(i quota.Index) bool { return h.Usage.Of(i) > 0 })
}

// borrows reports whether the node exceeds its quota of anything that is short. Where neither the node nor the queue of
// the preemptor names the resource, the node must exceed what it names of the others.
func (p *Preemptor) borrows(n *quota.Node) bool {
	return slices.ContainsFunc(p.Short, func(i quota.Index) bool {
		return n.Over(quota.Planned, i, 0) > 0 && (n.Names(i) || p.Queue.Names(i) || p.exceedsNamed(n))
	})
}

// exceedsNamed reports whether the node exceeds its quota of what it names of the preemptor's resources, or names none.
func (p *Preemptor) exceedsNamed(n *quota.Node) bool {
	return !n.NamesAny(p.Usage) || slices.ContainsFunc(p.Usage,
		func(a quota.Amount) bool { return n.Names(a.Index) && n.Over(quota.Planned, a.Index, 0) > 0 })
}

// stillBorrows reports whether the candidate's queue and all cohorts above it, up to those that it shares with the
// preemptor, use more than their own quota.
func (p *Preemptor) stillBorrows(c candidate) bool {
	for n := c.queue; ; n = n.Parent() {
		if !p.borrows(n) {
			return false
		}
		if n == c.below {
			return true
		}
	}
}

// isOwn reports whether the amounts of a candidate exceed what its queue, or a cohort above it, borrows. A preemptor
// that borrows has no right to the rest: the queue would reclaim it at once.
func (p *Preemptor) isOwn(c candidate, amounts quota.Vector) bool {
	for _, i := range p.Short {
		usage := amounts.Of(i)
		if usage == 0 {
			continue
		}
		for n := c.queue; ; n = n.Parent() {
			if n.Over(quota.Planned, i, 0) < usage {
				return true
			}
			usage = -n.Passed(quota.Planned, i, -usage)
			if n == c.below {
				break
			}
		}
	}
	return false
}

// entitled reports whether the preemptor's queue, or a cohort above it up to ours, can take what is short within its
// own quota: the preemptor then reclaims what is its own, regardless of shares.
func (p *Preemptor) entitled(ours *quota.Node) bool {
	needs := p.Usage
	for n := p.Queue; ; n = n.Parent() {
		within := !slices.ContainsFunc(p.Short,
			func(i quota.Index) bool { return n.Over(quota.Planned, i, needs.Of(i)) > 0 })
		if within || n == ours {
			return within
		}
		needs = fair.Passed(n, quota.Planned, needs)
	}
}

// underNominal reports whether the usage of the queue is below its quota for all that is short.
func (p *Preemptor) underNominal() bool {
	names := p.Queue.NamesAny(p.Usage)
	return !slices.ContainsFunc(p.Short, func(i quota.Index) bool {
		return (!names || p.Queue.Names(i)) && p.Queue.Used(quota.Planned, i) >= p.Queue.Quota(i)
	})
}

// fits reports whether the preemptor fits now, and, unless it may borrow, within its queue's own quota.
func (p *Preemptor) fits(borrow bool) bool {
	for _, a := range p.Usage {
		if p.Queue.Available(quota.Planned, a.Index) < a.Value {
			return false
		}
	}
	return borrow || within(p.Queue, p.Usage)
}

// within reports whether the node can take the amounts within its own quota.
//
// Resources that the node does not name do not count beside those that it names: a job within the 8 CPUs that its queue
// deserves does not borrow because the queue says nothing about memory.
func within(n *quota.Node, v quota.Vector) bool {
	names := n.NamesAny(v)
	return !slices.ContainsFunc(v, func(a quota.Amount) bool {
		return (!names || n.Names(a.Index)) && n.Over(quota.Planned, a.Index, a.Value) > 0
	})
}
