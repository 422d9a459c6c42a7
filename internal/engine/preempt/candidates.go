package preempt

import (
	"cmp"
	"slices"

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

// cause returns why the candidate is evicted without fair sharing.
func (c candidate) cause() Cause {
	switch c.class {
	case sameQueue:
		return InQueue
	case whileBorrowing:
		return ReclaimedWhileBorrowing
	default:
		return Reclaimed
	}
}

// stop returns the candidate as a victim that stops, after what it gave as an earlier victim.
func (c candidate) stop(earlier []Victim) Victim {
	v := Victim{Holder: c.Holder, Queue: c.queue}
	for _, before := range earlier {
		if before.Holder == c.Holder {
			v.gave = before.Gives
		}
	}
	return v
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
		return cmp.Or(cmp.Compare(position(a.class), position(b.class)), cmp.Compare(a.rank, b.rank),
			CompareHolders(a.Holder, b.Holder))
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
				s.Queue.Release(quota.Planned, c.Pod.Times(c.Spare))
			default:
				s.Queue.Release(quota.Planned, c.Usage)
			}
		}
		could = within(s.Queue, s.Usage)
	})
	return could
}

// passed returns what a node takes of the amounts from its parent. It reuses v.
func passed(n *quota.Node, v quota.Vector) quota.Vector {
	out := v[:0]
	for _, a := range v {
		out = append(out, quota.Amount{Index: a.Index, Value: n.Passed(quota.Planned, a.Index, a.Value)})
	}
	return out
}
