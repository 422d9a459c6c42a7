package preempt

import (
	"slices"
	"sort"

	"github.com/musterhq/muster/internal/engine/fair"
	"github.com/musterhq/muster/internal/engine/quota"
)

// Strategy says when somebody may be evicted for a fairer share. Compared are the two
// children of the lowest cohort over both: the one with the preemptor in it, and the
// one with its victim.
type Strategy int

const (
	// LessThanOrEqualToFinalShare: the share of the preemptor's, with it, is not more than
	// that of the victim's without the victim.
	LessThanOrEqualToFinalShare Strategy = iota
	// LessThanInitialShare: the share of the preemptor's, with it, is less than that of
	// the victim's, with the victim.
	LessThanInitialShare
)

// claim is a victim, and what made it one.
type claim struct {
	Victim
	// ours is the preemptor's side of the comparison; nil for a victim of its own queue.
	ours *quota.Node
	// By the strategy ours may have the share of bound, or has to stay below it.
	strategy Strategy
	bound    fair.Share
}

// fairSearch is one Search by fair shares.
type fairSearch struct {
	*search
	claims []claim
	// askAt is with how many claims there may be room on the nodes.
	askAt int
}

// byShares returns which of the candidates to evict. The strategies are tried one after
// the other: each takes from whom the ones before it could not.
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
					victims = f.needed()
					return
				}
			}
		}
	})
	return whole(victims)
}

// needed are the claims without what need not be given after all.
func (s *fairSearch) needed() (victims []Victim) {
	s.spareUnneeded()
	for _, c := range s.claims {
		victims = append(victims, c.Victim)
	}
	s.trim(victims, func() bool { return s.fits(true) && s.roomy() && s.allHold(s.claims) })
	return victims
}

// collectRivals walks up from the queue and lists whom it may evict of others that
// borrow what is short.
func (s *search) collectRivals(holders Holders) {
	if s.Policy.Reclaim == Never {
		return
	}
	for n := s.Queue; n.Parent() != nil; n = n.Parent() {
		for _, beside := range n.Parent().Children() {
			if beside != n {
				s.collectBorrowers(beside, beside, holders)
			}
		}
	}
}

// collectBorrowers adds those at or under a node.
func (s *search) collectBorrowers(n, below *quota.Node, holders Holders) {
	if !s.borrows(n) {
		return
	}
	for _, child := range n.Children() {
		s.collectBorrowers(child, below, holders)
	}
	if !n.IsQueue() || s.standingOf(n).Kept {
		return
	}
	for _, h := range holders(n) {
		if s.may(s.Policy.Reclaim, h) && s.helps(h) {
			s.candidates = append(s.candidates, candidate{Holder: h, queue: n, below: below})
		}
	}
}

// take evicts, always of the queue with the largest share, whom the strategy lets it,
// until the preemptor fits. It returns whom it was not allowed. onceEach leaves a queue
// alone after the first one of it.
func (s *fairSearch) take(strategy Strategy, from []part, onceEach bool) (left []part, enough bool) {
	field := newField(s.search, from)
	for r := field.next(); r != nil; r = field.next() {
		took := false
		for !took && len(r.waiting) > 0 {
			c := r.waiting[0]
			r.waiting = r.waiting[1:]
			if took = s.claim(strategy, c); !took {
				left = append(left, c)
			}
		}
		if took && s.fits(true) && s.roomyNow() {
			return nil, true
		}
		if onceEach && r.queue != s.Queue {
			left = append(left, r.waiting...)
			r.waiting = nil
		}
		if len(r.waiting) == 0 {
			field.leave(r)
		}
	}
	return left, s.Room != nil && len(s.claims) > 0 && s.fits(true) && s.Room.Fits()
}

// roomyNow is roomy, asked rarely: each time that there are twice as many claims. Who
// need not go after all is given back.
func (s *fairSearch) roomyNow() bool {
	if s.Room == nil {
		return true
	}
	if len(s.claims) < s.askAt {
		return false
	}
	s.askAt = 2 * len(s.claims)
	return s.Room.Fits()
}

// claim takes a part, if it may be taken: of pods that somebody can do without as many as may.
func (s *fairSearch) claim(strategy Strategy, p part) bool {
	if p.pods == 0 {
		made := s.stop(p.candidate, s.victimsOf(p.Holder))
		return s.claimAs(strategy, p.candidate, made)
	}
	n := sort.Search(int(p.pods), func(n int) bool {
		return p.class != sameQueue && !s.borrowsWithout(p, int32(n)) || !s.claimAs(strategy, p.candidate, p.victim(int32(n)+1)) || !s.unclaim()
	})
	return n > 0 && s.claimAs(strategy, p.candidate, p.victim(int32(n)))
}

// unclaim takes the last claim back.
func (s *fairSearch) unclaim() bool {
	last := len(s.claims) - 1
	s.charge(s.claims[last].Victim)
	s.claims = s.claims[:last]
	return true
}

// victimsOf are the claims on the holder.
func (s *fairSearch) victimsOf(h *Holder) (out []Victim) {
	for _, c := range s.claims {
		if c.Holder == h {
			out = append(out, c.Victim)
		}
	}
	return out
}

// claimAs has the candidate be a victim, if it may be.
func (s *fairSearch) claimAs(strategy Strategy, c candidate, v Victim) bool {
	made := claim{Victim: v}
	made.Cause = InQueue
	if c.queue != s.Queue {
		made.ours, made.strategy = s.beside(c.below), strategy
		made.Cause = FairShare
		if s.entitled(made.ours) {
			made.Cause = Reclaimed
		}
	}
	if made.strategy == LessThanInitialShare && made.ours != nil {
		made.bound = fair.Of(c.below, quota.Planned, nil)
	}
	s.release(made.Victim)
	if made.strategy == LessThanOrEqualToFinalShare && made.ours != nil {
		made.bound = fair.Of(c.below, quota.Planned, nil)
	}
	if !s.holds(made) {
		s.charge(made.Victim)
		return false
	}
	s.claims = append(s.claims, made)
	return true
}

// beside is the node over the preemptor that has the same parent.
func (s *fairSearch) beside(below *quota.Node) *quota.Node {
	n := s.Queue
	for n.Parent() != below.Parent() {
		n = n.Parent()
	}
	return n
}

// entitled reports whether the preemptor's queue, or a cohort over it up to ours, holds
// what is short within its own quota: it then takes back what is its own, and shares do
// not matter.
func (s *fairSearch) entitled(ours *quota.Node) bool {
	needs := s.Usage
	for n := s.Queue; ; n = n.Parent() {
		within := !slices.ContainsFunc(s.Short, func(i quota.Index) bool { return n.Over(quota.Planned, i, needs.Of(i)) > 0 })
		if within || n == ours {
			return within
		}
		needs = fair.Passed(n, quota.Planned, needs)
	}
}

// holds reports whether a claim is right as things are.
func (s *fairSearch) holds(c claim) bool {
	switch c.Cause {
	case InQueue:
		return true
	case Reclaimed:
		return s.entitled(c.ours)
	}
	by := fair.With(c.ours, quota.Planned, s.Queue, s.Usage).Compare(c.bound)
	return by < 0 || by == 0 && c.strategy == LessThanOrEqualToFinalShare
}

// allHold reports whether all the claims are right.
func (s *fairSearch) allHold(claims []claim) bool {
	return !slices.ContainsFunc(claims, func(c claim) bool { return !s.holds(c) })
}

// spareUnneeded gives back who need not go, the last one chosen first. Who is given back
// on the preemptor's side makes its share larger: he stays a victim where others could
// then not be.
func (s *fairSearch) spareUnneeded() {
	for again := true; again; {
		again = false
		for i := len(s.claims) - 1; i >= 0; i-- {
			c := s.claims[i]
			if !c.Stops() && goes(s.victimsOf(c.Holder), c.Holder) {
				continue
			}
			s.charge(c.Victim)
			without := slices.Delete(slices.Clone(s.claims), i, i+1)
			if s.fits(true) && s.roomy() && s.allHold(without) {
				s.claims, again = without, true
			} else {
				s.release(c.Victim)
			}
		}
	}
}
