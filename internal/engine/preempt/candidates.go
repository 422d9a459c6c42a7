package preempt

import (
	"cmp"
	"slices"

	"github.com/musterhq/muster/internal/engine/quota"
)

// class is by which right a candidate may be evicted, in the order in which
// candidates are tried.
type class int

const (
	// owed: the preemptor's part of the cohort is within its quota, which the candidate
	// borrows.
	owed class = iota
	// whileBorrowing: whatever the preemptor borrows, the candidate's priority is low
	// enough.
	whileBorrowing
	// unlessBorrowing: only if the preemptor then does not borrow.
	unlessBorrowing
	// sameQueue: of the same queue.
	sameQueue
)

type candidate struct {
	*Holder
	queue *quota.Node
	class class
	// below is the highest node over the candidate that the preemptor is not under.
	below *quota.Node
	// stays tells that it may be asked for pods, and not to go.
	stays bool
}

// search is one Search under way.
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

// collectOwn adds those of the same queue. In it elastic ones yield whatever its policy: to
// an equal what they can spare, to a higher priority all.
func (s *search) collectOwn(holders Holders) {
	for _, h := range holders(s.Queue) {
		if (s.goes(h) || s.onlyGives(h)) && s.helps(h) {
			s.candidates = append(s.candidates, candidate{Holder: h, queue: s.Queue, class: sameQueue, stays: !s.goes(h)})
		}
	}
}

// goes reports whether one of the same queue may be stopped, and onlyGives whether it may be
// asked for what it can spare alone.
func (s *search) goes(h *Holder) bool {
	return s.may(s.Policy.WithinQueue, h) || h.Pod != nil && h.Priority < s.Priority
}

func (s *search) onlyGives(h *Holder) bool {
	return !s.goes(h) && h.Spare > 0 && h.Priority == s.Priority
}

// rank has both kinds of reclaim without a claim of its own in one line.
func rank(c class) class {
	if c == unlessBorrowing {
		return whileBorrowing
	}
	return c
}

// collectCohort walks up from the queue and looks at all that hangs beside the way.
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

// collectUnder adds the borrowers at or under a node.
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

// standingOf is how a queue stands.
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
	case of.Kept:
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

// borrows reports whether the node uses more than its quota of anything that is
// short.
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

// passed is what of the amounts a node takes from its parent.
func passed(n *quota.Node, v quota.Vector) quota.Vector {
	out := v[:0]
	for _, a := range v {
		out = append(out, quota.Amount{Index: a.Index, Value: n.Passed(quota.Planned, a.Index, a.Value)})
	}
	return out
}
