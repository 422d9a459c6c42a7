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
}

// collect lists the candidates in the order in which they are tried.
func (s *search) collect(holders Holders) {
	s.collectOwn(holders)
	if len(s.Fair) > 0 {
		s.collectRivals(holders)
		return
	}
	if s.Policy.Reclaim != Never || s.Policy.MayWhileBorrowing() {
		s.collectCohort(holders)
	}
	slices.SortStableFunc(s.candidates, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(rank(a.class), rank(b.class)),
			cmp.Compare(s.standingOf(a.queue).Rank, s.standingOf(b.queue).Rank), CompareHolders(a.Holder, b.Holder))
	})
}

// collectOwn adds those of the same queue. Elastic workloads shrink in it regardless of its policy: by what they can
// spare for an equal priority, by everything for a higher one.
func (s *search) collectOwn(holders Holders) {
	for _, h := range holders(s.Queue) {
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

// rank puts both kinds of reclaim beyond the preemptor's own quota at the same position.
func rank(c class) class {
	if c == unlessBorrowing {
		return whileBorrowing
	}
	return c
}

// collectCohort walks up from the queue and adds the candidates in the subtrees beside the path.
func (s *search) collectCohort(holders Holders) {
	entitled := false
	needs := slices.Clone(s.Usage)
	for n := s.Queue; n.Parent() != nil; n = n.Parent() {
		entitled = entitled || within(n, needs)
		for _, beside := range n.Parent().Children() {
			if beside != n {
				s.collectUnder(beside, beside, entitled, holders)
			}
		}
		needs = passed(n, needs)
	}
}

// collectUnder adds the borrowers at or below a node.
func (s *search) collectUnder(n, below *quota.Node, entitled bool, holders Holders) {
	if !s.borrows(n) {
		return
	}
	for _, child := range n.Children() {
		s.collectUnder(child, below, entitled, holders)
	}
	if !n.IsQueue() {
		return
	}
	standing := s.standingOf(n)
	for _, h := range holders(n) {
		if c, ok := s.classOf(h, standing, entitled); ok && s.helps(h) {
			s.candidates = append(s.candidates, candidate{Holder: h, queue: n, class: c, below: below})
		}
	}
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

// borrows reports whether the node exceeds its quota of anything that is short.
func (s *search) borrows(n *quota.Node) bool {
	return slices.ContainsFunc(s.Short, func(i quota.Index) bool { return n.Over(quota.Planned, i, 0) > 0 })
}

// helps reports whether the holder has any of what is short, and is not spared.
func (s *search) helps(h *Holder) bool {
	return !s.Spared.Has(h.Key) && slices.ContainsFunc(s.Short, func(i quota.Index) bool { return h.Usage.Of(i) > 0 })
}

// within reports whether the node can take the amounts within its own quota.
func within(n *quota.Node, v quota.Vector) bool {
	return !slices.ContainsFunc(v, func(a quota.Amount) bool { return n.Over(quota.Planned, a.Index, a.Value) > 0 })
}

// passed returns what a node takes of the amounts from its parent. It reuses v.
func passed(n *quota.Node, v quota.Vector) quota.Vector {
	out := v[:0]
	for _, a := range v {
		out = append(out, quota.Amount{Index: a.Index, Value: n.Passed(quota.Planned, a.Index, a.Value)})
	}
	return out
}
