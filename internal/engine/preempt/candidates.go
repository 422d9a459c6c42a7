package preempt

import (
	"cmp"
	"slices"
	"sort"

	"github.com/musterhq/muster/internal/engine/quota"
)

// class is why a candidate may be evicted, in the order in which candidates are tried.
type class int

const (
	// owed: the preemptor's part of the cohort is within its quota, and the candidate borrows from it.
	owed class = iota
	// whileBorrowing: the candidate's priority is low enough even if the preemptor borrows.
	whileBorrowing
	// unlessBorrowing: only if the preemptor does not borrow.
	unlessBorrowing
	// sameQueue: the candidate is in the same queue.
	sameQueue
)

type candidate struct {
	*Holder
	queue *quota.Node
	class class
	// rank is that of its queue in the cohort, 0 if that is the preemptor's.
	rank int32
	// below is the highest node above the candidate that is not above the preemptor.
	below *quota.Node
	// stays is set if it may shrink, but not be stopped.
	stays bool
}

// search is one call of Search.
type search struct {
	Preemptor
	tree       *quota.Tree
	candidates []candidate
	// futile is set if candidates are listed that cannot become victims, whatever else is evicted. Most searches find
	// nothing, since each waiting workload is tried whenever another one ends. So what is futile is not even listed,
	// except for an explanation.
	futile bool
}

// collect lists the candidates.
func (s *search) collect(holders Holders) {
	s.collectOwn(holders)
	switch {
	case len(s.Fair) > 0 && s.Policy.Reclaim != Never:
		s.collectRivals(holders)
	case len(s.Fair) == 0 && (s.Policy.Reclaim != Never || s.Policy.MayWhileBorrowing()):
		s.collectCohort(holders)
	}
}

// sortCandidates sorts the candidates in the order in which they are tried without fair sharing.
func (s *search) sortCandidates() {
	slices.SortFunc(s.candidates, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(position(a.class), position(b.class)), cmp.Compare(a.rank, b.rank), CompareHolders(a.Holder, b.Holder))
	})
}

// collectOwn adds those of the same queue. Elastic workloads shrink in it regardless of its policy: by what they can
// spare for an equal priority, by everything for a higher one.
func (s *search) collectOwn(holders Holders) {
	all, elastic := holders(s.Queue)
	rule := s.Policy.WithinQueue
	if elastic {
		rule = max(rule, LowerOrNewerEqualPriority)
	}
	for _, h := range s.reachedBy(rule, all) {
		if (s.mayStop(h) || s.mayOnlyShrink(h)) && s.helps(h) {
			s.candidates = append(s.candidates, candidate{Holder: h, queue: s.Queue, class: sameQueue, stays: !s.mayStop(h)})
		}
	}
}

// mayStop reports whether a holder of the same queue may be stopped, and mayOnlyShrink whether it may only shrink by
// what it can spare.
func (s *search) mayStop(h *Holder) bool {
	return s.may(s.Policy.WithinQueue, h) || h.Pod != nil && h.Priority < s.Priority
}

func (s *search) mayOnlyShrink(h *Holder) bool {
	return !s.mayStop(h) && h.Spare > 0 && h.Priority == s.Priority
}

// reachedBy returns the holders without those at the end whose priority the rule does not reach.
func (s *search) reachedBy(rule Rule, holders []*Holder) []*Holder {
	return holders[:sort.Search(len(holders), func(n int) bool {
		switch h := holders[n]; {
		case h.Promised: // these come first, whatever their priority
			return false
		case rule == Never:
			return true
		case rule == LowerPriority:
			return h.Priority >= s.Priority
		case rule == LowerOrNewerEqualPriority:
			return h.Priority > s.Priority
		default:
			return false
		}
	})]
}

// position puts both kinds of reclaim beyond the preemptor's own quota at the same position.
func position(c class) class {
	if c == unlessBorrowing {
		return whileBorrowing
	}
	return c
}

// collectCohort walks up from the queue and adds the candidates in the subtrees beside the path.
func (s *search) collectCohort(holders Holders) {
	entitled := false
	unborrowed := s.futile || s.couldStayWithin()
	needs := slices.Clone(s.Usage)
	for n := s.Queue; n.Parent() != nil; n = n.Parent() {
		entitled = entitled || within(n, needs)
		if entitled || unborrowed || s.Policy.MayWhileBorrowing() {
			for _, beside := range n.Parent().Children() {
				if beside != n {
					s.collectUnder(beside, beside, entitled, unborrowed, holders)
				}
			}
		}
		needs = passed(n, needs)
	}
}

// collectUnder adds the borrowers at or below a node, those of the class unlessBorrowing only if unborrowed is set.
func (s *search) collectUnder(n, below *quota.Node, entitled, unborrowed bool, holders Holders) {
	if !s.borrows(n) {
		return
	}
	for _, child := range n.Children() {
		s.collectUnder(child, below, entitled, unborrowed, holders)
	}
	if !n.IsQueue() {
		return
	}
	standing := s.standingOf(n)
	all, _ := holders(n)
	for _, h := range s.reachedBy(s.ruleTowards(standing), all) {
		if c, ok := s.classOf(h, standing, entitled); ok && (c != unlessBorrowing || unborrowed) && s.helps(h) {
			s.candidates = append(s.candidates, candidate{Holder: h, queue: n, class: c, rank: standing.Rank, below: below})
		}
	}
}

// ruleTowards returns a rule that reaches all that may be evicted of a queue of that standing.
func (s *search) ruleTowards(of Standing) Rule {
	switch {
	case of.Rank < s.Policy.Rank:
		return Any
	case s.Policy.WhileBorrowing:
		return max(s.Policy.Reclaim, LowerPriority)
	default:
		return s.Policy.Reclaim
	}
}

// couldStayWithin reports whether the search also tries to keep the preemptor within its queue's own quota, and
// whether it would fit there without the candidates of that queue.
func (s *search) couldStayWithin() (could bool) {
	if !s.Policy.MayWhileBorrowing() && !s.underNominal() {
		return false
	}
	s.tree.Try(func() {
		for _, c := range s.candidates {
			switch {
			case c.class != sameQueue:
			case c.stays:
				s.tree.Release(s.Queue.Name(), quota.Planned, c.Pod.Times(c.Spare))
			default:
				s.tree.Release(s.Queue.Name(), quota.Planned, c.Usage)
			}
		}
		could = within(s.Queue, s.Usage)
	})
	return could
}

// standingOf returns the Standing of a queue.
func (s *search) standingOf(queue *quota.Node) Standing {
	if s.StandingOf == nil {
		return Standing{}
	}
	return s.StandingOf(queue)
}

func (s *search) classOf(h *Holder, of Standing, entitled bool) (class, bool) {
	lowEnough := s.Policy.WhileBorrowing && h.Priority < s.Priority &&
		(s.Policy.Threshold == nil || h.Priority <= *s.Policy.Threshold)
	reclaimable := s.may(s.Policy.Reclaim, h)
	switch {
	case of.Protected:
		return 0, false
	case entitled && reclaimable:
		return owed, true
	case of.Rank > s.Policy.Rank:
		return 0, false
	case lowEnough, of.Rank < s.Policy.Rank:
		return whileBorrowing, true
	case reclaimable:
		return unlessBorrowing, true
	}
	return 0, false
}

// borrows reports whether the node exceeds its quota of anything that is short. Where neither the node nor the queue of
// the preemptor names the resource, the node must exceed what it names of the others.
func (s *search) borrows(n *quota.Node) bool {
	return slices.ContainsFunc(s.Short, func(i quota.Index) bool {
		return n.Over(quota.Planned, i, 0) > 0 && (n.Names(i) || s.Queue.Names(i) || s.exceedsNamed(n))
	})
}

// exceedsNamed reports whether the node exceeds its quota of what it names of the preemptor's resources, or names none.
func (s *search) exceedsNamed(n *quota.Node) bool {
	return !n.NamesAny(s.Usage) || slices.ContainsFunc(s.Usage, func(a quota.Amount) bool { return n.Names(a.Index) && n.Over(quota.Planned, a.Index, 0) > 0 })
}

// helps reports whether the holder has any of what is short, and is not spared.
func (s *search) helps(h *Holder) bool {
	return !s.Spared.Has(h.Key) && slices.ContainsFunc(s.Short, func(i quota.Index) bool { return h.Usage.Of(i) > 0 })
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

// passed returns what a node takes of the amounts from its parent. It reuses v.
func passed(n *quota.Node, v quota.Vector) quota.Vector {
	out := v[:0]
	for _, a := range v {
		out = append(out, quota.Amount{Index: a.Index, Value: n.Passed(quota.Planned, a.Index, a.Value)})
	}
	return out
}
