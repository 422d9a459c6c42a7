package preempt

import (
	"cmp"
	"slices"
	"sort"

	"github.com/musterhq/muster/internal/engine/fair"
	"github.com/musterhq/muster/internal/engine/quota"
)

// Strategy says when a workload may be evicted for a fairer share. It compares the two children of the lowest cohort
// above both workloads: ours, which contains the preemptor, and theirs, which contains the victim.
type Strategy int

const (
	// LessThanOrEqualToFinalShare: our share with the preemptor is at most their share without the victim.
	LessThanOrEqualToFinalShare Strategy = iota
	// LessThanInitialShare: our share with the preemptor is less than their share with the victim.
	LessThanInitialShare
)

// fairVictim is a victim with the justification of its eviction.
type fairVictim struct {
	Victim
	// ours is the preemptor's side of the comparison; nil for a victim of its own queue.
	ours *quota.Node
	// By the strategy, the share of ours must be at most bound, or less than it.
	strategy Strategy
	bound    fair.Share
}

// fairSearch is one Search by fair shares.
type fairSearch struct {
	*search
	victims []fairVictim
	// askAt is the number of victims at which to check nodes next.
	askAt int
}

// byShares returns the candidates to evict. The strategies are tried in turn, each with the candidates that the ones
// before it did not allow.
func (s *search) byShares() (victims []Victim) {
	f := &fairSearch{search: s}
	left := s.parts()
	s.tentatively(func() {
		for n, strategy := range s.Fair {
			for i := range left {
				if len(left[i]) == 0 {
					continue
				}
				var enough bool
				if left[i], enough = f.take(strategy, left[i], n > 0); enough {
					victims = f.neededVictims()
					return
				}
			}
		}
	})
	return withoutDuplicates(victims)
}

// neededVictims returns the chosen victims without those that are not necessary.
func (s *fairSearch) neededVictims() (victims []Victim) {
	s.restoreUnneeded()
	for _, c := range s.victims {
		victims = append(victims, c.Victim)
	}
	s.trim(victims, func() bool { return s.fits(true) && s.fitsNodes() && s.allJustified(s.victims) })
	return victims
}

// collectRivals walks up from the queue and lists the workloads of other queues that it may evict and that borrow
// what is short.
func (s *search) collectRivals(holders Holders) {
	for n := s.Queue; n.Parent() != nil; n = n.Parent() {
		for _, beside := range s.rivalsOf(n) {
			if beside != n {
				s.collectBorrowers(beside, beside, holders)
			}
		}
	}
}

// rivalsOf returns the children of the cohort of ours below which the eviction of any workload might be justified, and
// maybe ours. Without all candidates so far, which are those below ours, the share of ours is at its smallest; that of
// a sibling only decreases.
func (s *search) rivalsOf(ours *quota.Node) []*quota.Node {
	entitled := s.futile
	var least fair.Share
	s.tree.Try(func() {
		for _, c := range s.candidates {
			s.tree.Release(c.queue.Name(), quota.Planned, c.Usage)
		}
		entitled = entitled || s.entitled(ours)
		least = fair.With(ours, quota.Planned, s.Queue, s.Usage)
	})
	if entitled {
		return ours.Parent().Children()
	}
	ranking := cmp.Or(s.Ranking, &fair.Ranking{})
	return ranking.Above(ours.Parent(), least, slices.Contains(s.Fair, LessThanOrEqualToFinalShare))
}

// collectBorrowers adds those at or below a node.
func (s *search) collectBorrowers(n, below *quota.Node, holders Holders) {
	if !s.borrows(n) {
		return
	}
	for _, child := range n.Children() {
		s.collectBorrowers(child, below, holders)
	}
	if !n.IsQueue() {
		return
	}
	all, _ := holders(n)
	reached := s.reachedBy(s.Policy.Reclaim, all)
	if len(reached) == 0 || s.standingOf(n).Protected {
		return
	}
	for _, h := range reached {
		if s.may(s.Policy.Reclaim, h) && s.helps(h) {
			s.candidates = append(s.candidates, candidate{Holder: h, queue: n, below: below})
		}
	}
}

// take evicts workloads that the strategy allows, each time of the queue with the largest share, until the preemptor
// fits. It returns those that were not allowed. onceEach makes it skip a queue after one workload of it.
func (s *fairSearch) take(strategy Strategy, from []part, onceEach bool) (left []part, enough bool) {
	rivals := newRivalQueues(s.search, from)
	for r := rivals.next(); r != nil; r = rivals.next() {
		took := false
		for !took && len(r.waiting) > 0 {
			c := r.waiting[0]
			r.waiting = r.waiting[1:]
			if took = s.choose(strategy, c); !took {
				left = append(left, c)
			}
		}
		if took && s.fits(true) && s.fitsNodesNow() {
			return nil, true
		}
		if onceEach && r.node != s.Queue {
			left = append(left, r.waiting...)
			r.waiting = nil
		}
		rivals.tried(r)
	}
	return left, s.Nodes != nil && len(s.victims) > 0 && s.fits(true) && s.Nodes.Fits()
}

// fitsNodesNow is fitsNodes, but checks only each time that the number of victims has doubled. Unnecessary victims are
// restored later.
func (s *fairSearch) fitsNodesNow() bool {
	if s.Nodes == nil {
		return true
	}
	if len(s.victims) < s.askAt {
		return false
	}
	s.askAt = 2 * len(s.victims)
	return s.Nodes.Fits()
}

// choose evicts the candidate, or shrinks it by as many pods as allowed; it reports whether it did.
func (s *fairSearch) choose(strategy Strategy, p part) bool {
	if p.pods == 0 {
		chosen := s.stop(p.candidate, s.victimsOf(p.Holder))
		return s.chooseVictim(strategy, p.candidate, chosen)
	}
	mayGive := func(pods int32) bool {
		if p.class != sameQueue && !s.borrowsWithout(p, pods-1) || !s.chooseVictim(strategy, p.candidate, p.victim(pods)) {
			return false
		}
		s.dropLast()
		return true
	}
	most := int32(sort.Search(int(p.pods), func(n int) bool { return !mayGive(int32(n) + 1) }))
	return most > 0 && s.chooseVictim(strategy, p.candidate, p.victim(most))
}

// dropLast reverses the last choice.
func (s *fairSearch) dropLast() {
	last := len(s.victims) - 1
	s.charge(s.victims[last].Victim)
	s.victims = s.victims[:last]
}

// victimsOf returns the victims chosen from the holder.
func (s *fairSearch) victimsOf(h *Holder) (out []Victim) {
	for _, c := range s.victims {
		if c.Holder == h {
			out = append(out, c.Victim)
		}
	}
	return out
}

// chooseVictim makes the candidate a victim if that is justified.
func (s *fairSearch) chooseVictim(strategy Strategy, c candidate, v Victim) bool {
	chosen := fairVictim{Victim: v}
	chosen.Cause = InQueue
	if c.queue != s.Queue {
		chosen.ours, chosen.strategy = s.beside(c.below), strategy
		chosen.Cause = FairShare
		if s.entitled(chosen.ours) {
			chosen.Cause = Reclaimed
		}
	}
	if chosen.strategy == LessThanInitialShare && chosen.ours != nil {
		chosen.bound = fair.Of(c.below, quota.Planned, nil)
	}
	s.release(chosen.Victim)
	if chosen.strategy == LessThanOrEqualToFinalShare && chosen.ours != nil {
		chosen.bound = fair.Of(c.below, quota.Planned, nil)
	}
	if !s.isJustified(chosen) {
		s.charge(chosen.Victim)
		return false
	}
	s.victims = append(s.victims, chosen)
	return true
}

// beside returns the node above the preemptor that has the same parent as below.
func (s *fairSearch) beside(below *quota.Node) *quota.Node {
	n := s.Queue
	for n.Parent() != below.Parent() {
		n = n.Parent()
	}
	return n
}

// entitled reports whether the preemptor's queue, or a cohort above it up to ours, can take what is short within its
// own quota: the preemptor then reclaims what is its own, regardless of shares.
func (s *search) entitled(ours *quota.Node) bool {
	needs := s.Usage
	for n := s.Queue; ; n = n.Parent() {
		within := !slices.ContainsFunc(s.Short, func(i quota.Index) bool { return n.Over(quota.Planned, i, needs.Of(i)) > 0 })
		if within || n == ours {
			return within
		}
		needs = fair.Passed(n, quota.Planned, needs)
	}
}

// isJustified reports whether the eviction of a victim is justified in the present state.
func (s *fairSearch) isJustified(c fairVictim) bool {
	switch c.Cause {
	case InQueue:
		return true
	case Reclaimed:
		return s.entitled(c.ours)
	}
	by := fair.With(c.ours, quota.Planned, s.Queue, s.Usage).Compare(c.bound)
	return by < 0 || by == 0 && c.strategy == LessThanOrEqualToFinalShare
}

// allJustified reports whether the evictions of all the victims are justified.
func (s *fairSearch) allJustified(victims []fairVictim) bool {
	return !slices.ContainsFunc(victims, func(v fairVictim) bool { return !s.isJustified(v) })
}

// restoreUnneeded restores unnecessary victims, in reverse order of their choice. Restoring one on the preemptor's side
// increases that side's share: it remains a victim if the evictions of others would not be justified any more.
func (s *fairSearch) restoreUnneeded() {
	for again := true; again; {
		again = false
		for i := len(s.victims) - 1; i >= 0; i-- {
			c := s.victims[i]
			if !c.Stops() && stops(s.victimsOf(c.Holder), c.Holder) {
				continue
			}
			s.charge(c.Victim)
			without := slices.Delete(slices.Clone(s.victims), i, i+1)
			if s.fits(true) && s.fitsNodes() && s.allJustified(without) {
				s.victims, again = without, true
			} else {
				s.release(c.Victim)
			}
		}
	}
}
