package preempt

import (
	"fmt"
	"slices"
	"sync"

	"github.com/musterhq/muster/internal/engine/order"
	"github.com/musterhq/muster/internal/engine/quota"
)

// Explainer explains why holders may not be evicted for a preemptor.
type Explainer struct {
	search     search
	candidates map[order.Key]candidate
	// staysWithin caches couldStayWithin for all holders.
	staysWithin func() bool
}

// NewExplainer returns the Explainer of the preemptor. It is for messages to users: Search does not use it, but both
// use the same list of candidates.
func NewExplainer(tree *quota.Tree, p Preemptor, holders Holders) *Explainer {
	b := &Explainer{search: search{tree: tree, Preemptor: p, futile: true}, candidates: map[order.Key]candidate{}}
	b.search.collect(holders)
	for _, c := range b.search.candidates {
		b.candidates[c.Key] = c
	}
	b.staysWithin = sync.OnceValue(b.search.couldStayWithin)
	return b
}

// Why returns what prevents the holder, of that queue, from being evicted, or "" if the rules allow it.
func (e *Explainer) Why(h *Holder, queue *quota.Node) string {
	s := &e.search
	c, known := e.candidates[h.Key]
	switch {
	case known && queue == s.Queue && s.mayOnlyShrink(h):
		return fmt.Sprintf("it is elastic, and can only shrink by %d", h.Spare)
	case known && queue != s.Queue && len(s.Fair) > 0:
		return s.unfair(c)
	case known:
		return e.borrowing(c)
	case s.Spared.Has(h.Key) && h.Priority > s.Priority:
		return fmt.Sprintf("its priority %d is above %d, and the workload was evicted for it before", h.Priority, s.Priority)
	case s.Spared.Has(h.Key):
		return "the workload was evicted for it before, and does not take that back"
	case queue == s.Queue:
		return e.byRule("withinClusterQueue", s.Policy.WithinQueue, h)
	case s.standingOf(queue).Protected:
		return fmt.Sprintf("ClusterQueue %s is not preemptible", queue.Name())
	case s.Policy.Reclaim == Never && !s.Policy.MayWhileBorrowing():
		return "reclaimWithinCohort is Never"
	case !s.reachable(queue):
		return fmt.Sprintf("within the quota of ClusterQueue %s or its cohort", queue.Name())
	case s.standingOf(queue).Rank > s.Policy.Rank:
		return fmt.Sprintf("ClusterQueue %s has the higher priority, %d", queue.Name(), s.standingOf(queue).Rank)
	case s.Policy.WhileBorrowing && s.Policy.Threshold != nil && h.Priority > *s.Policy.Threshold &&
		s.Policy.Reclaim == Never:
		return fmt.Sprintf("its priority %d is above maxPriorityThreshold %d", h.Priority, *s.Policy.Threshold)
	case s.Policy.Reclaim == Never:
		return fmt.Sprintf("borrowWithinCohort is LowerPriority, and its priority %d is not below %d", h.Priority, s.Priority)
	default:
		return e.byRule("reclaimWithinCohort", s.Policy.Reclaim, h)
	}
}

func (e *Explainer) byRule(field string, rule Rule, h *Holder) string {
	switch rule {
	case Never:
		switch {
		case h.Priority > e.search.Priority: // no other rule would help either
			return fmt.Sprintf("its priority %d is above %d", h.Priority, e.search.Priority)
		case h.Priority == e.search.Priority:
			return field + " is Never, and it has the same priority"
		}
		return field + " is Never"
	case LowerPriority:
		return fmt.Sprintf("%s is LowerPriority, and its priority %d is not below %d", field, h.Priority, e.search.Priority)
	case LowerOrNewerEqualPriority:
		return fmt.Sprintf("%s is LowerOrNewerEqualPriority, and it has priority %d, not below %d, and was not queued later",
			field, h.Priority, e.search.Priority)
	default:
		return "it holds nothing that would help"
	}
}

// unfair returns why no strategy allows evicting the candidate, of another queue, on its own; "" if one does.
func (s *search) unfair(c candidate) (why string) {
	s.tentatively(func() {
		f := &fairSearch{search: s}
		for _, strategy := range s.Fair {
			if f.chooseVictim(strategy, c, c.stop(nil)) {
				return
			}
		}
		ours := f.beside(c.below)
		bound := "must not exceed that of %s after the eviction"
		if slices.Contains(s.Fair, LessThanInitialShare) {
			bound = "must be less than that of %s"
		}
		why = fmt.Sprintf("by fair sharing, the share of %s with the workload "+bound, ours.Name(), c.below.Name())
	})
	return why
}

// borrowing returns why the candidate, which the rules of priority allow to evict, may not be evicted by a preemptor
// that borrows; "" if it may.
func (e *Explainer) borrowing(c candidate) string {
	s := &e.search
	part := c.Usage
	if c.Pod != nil {
		part = c.Pod
	}
	switch {
	case c.class == whileBorrowing && s.isOwn(c, part):
		return fmt.Sprintf("not all of what it holds is borrowed by ClusterQueue %s", c.queue.Name())
	case c.class != unlessBorrowing || e.staysWithin():
		return ""
	case s.Policy.WhileBorrowing && c.Priority >= s.Priority:
		return fmt.Sprintf("the workload would borrow, and borrowWithinCohort is LowerPriority: its priority %d is not below %d",
			c.Priority, s.Priority)
	case s.Policy.WhileBorrowing:
		return fmt.Sprintf("the workload would borrow, and its priority %d is above maxPriorityThreshold %d", c.Priority,
			*s.Policy.Threshold)
	default:
		return "the workload would borrow, and borrowWithinCohort is Never"
	}
}

// reachable reports whether each node between the queue and the preemptor's part of the cohort borrows something that
// is short.
func (s *search) reachable(queue *quota.Node) bool {
	above := map[*quota.Node]bool{}
	for n := s.Queue; n != nil; n = n.Parent() {
		above[n] = true
	}
	for n := queue; n != nil && !above[n]; n = n.Parent() {
		if !s.borrows(n) {
			return false
		}
	}
	return true
}

// String returns the cause as conditions name it.
func (c Cause) String() string {
	switch c {
	case InQueue:
		return "InClusterQueue"
	case Reclaimed:
		return "InCohortReclamation"
	case ReclaimedWhileBorrowing:
		return "InCohortReclaimWhileBorrowing"
	case NodeFailures:
		return "NodeFailures"
	default:
		return "InCohortFairSharing"
	}
}
