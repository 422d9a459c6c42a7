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
func (f *fairSearch) neededVictims() (victims []Victim) {
	f.restoreUnneeded()
	for _, c := range f.victims {
		victims = append(victims, c.Victim)
	}
	f.trim(victims, func() bool { return f.fits(true) && f.fitsNodes() && f.allJustified(f.victims) })
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
			c.queue.Release(quota.Planned, c.Usage)
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
func (f *fairSearch) take(strategy Strategy, from []part, onceEach bool) (left []part, enough bool) {
	rivals := newRivalQueues(f.search, from)
	for r := rivals.next(); r != nil; r = rivals.next() {
		took := false
		for !took && len(r.waiting) > 0 {
			c := r.waiting[0]
			r.waiting = r.waiting[1:]
			if took = f.choose(strategy, c); !took {
				left = append(left, c)
			}
		}
		if took && f.fits(true) && f.fitsNodesNow() {
			return nil, true
		}
		if onceEach && r.node != f.Queue {
			left = append(left, r.waiting...)
			r.waiting = nil
		}
		rivals.tried(r)
	}
	return left, f.Nodes != nil && len(f.victims) > 0 && f.fits(true) && f.Nodes.Fits()
}

// fitsNodesNow is fitsNodes, but checks only each time that the number of victims has doubled. Unnecessary victims are
// restored later.
func (f *fairSearch) fitsNodesNow() bool {
	if f.Nodes == nil {
		return true
	}
	if len(f.victims) < f.askAt {
		return false
	}
	f.askAt = 2 * len(f.victims)
	return f.Nodes.Fits()
}

// choose evicts the candidate, or shrinks it by as many pods as allowed; it reports whether it did.
func (f *fairSearch) choose(strategy Strategy, p part) bool {
	if p.pods == 0 {
		chosen := p.stop(f.victimsOf(p.Holder))
		return f.chooseVictim(strategy, p.candidate, chosen)
	}
	mayGive := func(pods int32) bool {
		if p.class != sameQueue && !f.borrowsWithout(p, pods-1) || !f.chooseVictim(strategy, p.candidate, p.victim(pods)) {
			return false
		}
		f.dropLast()
		return true
	}
	most := int32(sort.Search(int(p.pods), func(n int) bool { return !mayGive(int32(n) + 1) }))
	return most > 0 && f.chooseVictim(strategy, p.candidate, p.victim(most))
}

// dropLast reverses the last choice.
func (f *fairSearch) dropLast() {
	last := len(f.victims) - 1
	f.charge(f.victims[last].Victim)
	f.victims = f.victims[:last]
}

// victimsOf returns the victims chosen from the holder.
func (f *fairSearch) victimsOf(h *Holder) (out []Victim) {
	for _, c := range f.victims {
		if c.Holder == h {
			out = append(out, c.Victim)
		}
	}
	return out
}

// chooseVictim makes the candidate a victim if that is justified.
func (f *fairSearch) chooseVictim(strategy Strategy, c candidate, v Victim) bool {
	chosen := fairVictim{Victim: v}
	chosen.Cause = InQueue
	if c.queue != f.Queue {
		chosen.ours, chosen.strategy = f.beside(c.below), strategy
		chosen.Cause = FairShare
		if f.entitled(chosen.ours) {
			chosen.Cause = Reclaimed
		}
	}
	if chosen.strategy == LessThanInitialShare && chosen.ours != nil {
		chosen.bound = fair.Of(c.below, quota.Planned, nil)
	}
	f.release(chosen.Victim)
	if chosen.strategy == LessThanOrEqualToFinalShare && chosen.ours != nil {
		chosen.bound = fair.Of(c.below, quota.Planned, nil)
	}
	if !f.isJustified(chosen) {
		f.charge(chosen.Victim)
		return false
	}
	f.victims = append(f.victims, chosen)
	return true
}

// beside returns the node above the preemptor that has the same parent as below.
func (f *fairSearch) beside(below *quota.Node) *quota.Node {
	n := f.Queue
	for n.Parent() != below.Parent() {
		n = n.Parent()
	}
	return n
}

// isJustified reports whether the eviction of a victim is justified in the present state.
func (f *fairSearch) isJustified(c fairVictim) bool {
	switch c.Cause {
	case InQueue:
		return true
	case Reclaimed:
		return f.entitled(c.ours)
	}
	by := fair.With(c.ours, quota.Planned, f.Queue, f.Usage).Compare(c.bound)
	return by < 0 || by == 0 && c.strategy == LessThanOrEqualToFinalShare
}

// allJustified reports whether the evictions of all the victims are justified.
func (f *fairSearch) allJustified(victims []fairVictim) bool {
	return !slices.ContainsFunc(victims, func(v fairVictim) bool { return !f.isJustified(v) })
}

// restoreUnneeded restores unnecessary victims, in reverse order of their choice. Restoring one on the preemptor's side
// increases that side's share: it remains a victim if the evictions of others would not be justified any more.
func (f *fairSearch) restoreUnneeded() {
	for again := true; again; {
		again = false
		for i := len(f.victims) - 1; i >= 0; i-- {
			c := f.victims[i]
			if !c.Stops() && stops(f.victimsOf(c.Holder), c.Holder) {
				continue
			}
			f.charge(c.Victim)
			without := slices.Delete(slices.Clone(f.victims), i, i+1)
			if f.fits(true) && f.fitsNodes() && f.allJustified(without) {
				f.victims, again = without, true
			} else {
				f.release(c.Victim)
			}
		}
	}
}
