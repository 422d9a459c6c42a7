package preempt

import (
	"slices"

	"github.com/musterhq/muster/internal/engine/quota"
)

// worthTrying reports whether all candidates together have as much as is missing: most searches end here, without a
// trial.
func (s *search) worthTrying() bool {
	for _, i := range s.Short {
		room := s.Queue.Available(quota.Planned, i)
		for _, c := range s.candidates {
			room = quota.Add(room, c.Usage.Of(i))
		}
		if room < s.Usage.Of(i) {
			return false
		}
	}
	return len(s.candidates) > 0
}

// mayBorrow and ownOnly say whether the preemptor may borrow in an attempt.
const mayBorrow, ownOnly = true, false

// attempts returns the attempts with and without borrowing in the order in which they are made.
func (s *search) attempts() []bool {
	onlySameQueue := !slices.ContainsFunc(s.candidates, func(c candidate) bool { return c.class != sameQueue })
	switch {
	case onlySameQueue, !s.Policy.MayWhileBorrowing() && !s.underNominal():
		return []bool{mayBorrow}
	case !s.Policy.MayWhileBorrowing() &&
		!slices.ContainsFunc(s.candidates, func(c candidate) bool { return c.class == owed }):
		return []bool{ownOnly, mayBorrow}
	default:
		return []bool{mayBorrow, ownOnly}
	}
}

// try removes candidates until the preemptor fits, then restores, in reverse order, those that it fits beside.
func (s *search) try(borrow bool) (victims []Victim) {
	s.tentatively(func() {
		enough := -1 // the number of victims that suffice for the quota
		if s.Nodes != nil && s.fits(borrow) {
			enough = 0
		}
		for _, part := range slices.Concat(s.parts()...) {
			if part.class == unlessBorrowing && borrow {
				continue
			}
			v, gives := s.allowedPart(part, victims)
			if !gives {
				continue
			}
			v.Queue.Release(quota.Planned, v.Releases())
			victims = append(victims, v)
			if enough < 0 && s.fits(borrow) {
				enough = len(victims)
				if s.Nodes == nil {
					break
				}
			}
		}
		if enough < 0 || !s.freeNodes(&victims, enough) {
			victims = nil
			return
		}
		victims = s.restoreUnneededVictims(victims, borrow)
		s.trim(victims, func() bool { return s.fits(borrow) && s.fitsNodes() })
	})
	return withoutDuplicates(victims)
}

// tentatively runs f and rolls back what it released and charged.
func (s *search) tentatively(f func()) {
	if s.Nodes == nil {
		s.tree.Try(f)
		return
	}
	s.tree.Try(func() { s.Nodes.Try(f) })
}

// release releases what the victim gives back; charge reverses it.
func (s *search) release(v Victim) {
	v.Queue.Release(quota.Planned, v.Releases())
	if s.Nodes != nil {
		s.Nodes.Without(v.Holder, v.Without())
	}
}

func (s *search) charge(v Victim) {
	v.Queue.Charge(quota.Planned, v.Releases())
	if s.Nodes != nil {
		s.Nodes.Without(v.Holder, v.gave)
	}
}

// freeNodes finds the smallest number of victims, at least fewest, that make enough capacity on the nodes, and
// restores the rest. The quota of all of them is released at the start. It reports whether there is such a number.
// Capacity grows with the victims. Fits may take long, so that it is called seldom: not for each number. Taking
// thousands off the nodes takes long too, and few are enough for most preemptors, so that it begins with few.
func (s *search) freeNodes(victims *[]Victim, fewest int) bool {
	if s.Nodes == nil {
		return true
	}
	all, off := *victims, 0
	fits := func(n int) bool {
		for ; off > n; off-- {
			s.Nodes.Without(all[off-1].Holder, all[off-1].gave)
		}
		for ; off < n; off++ {
			s.Nodes.Without(all[off].Holder, all[off].Without())
		}
		return s.Nodes.Fits()
	}
	low, high := fewest, min(max(fewest, 1), len(all))
	for !fits(high) {
		if high == len(all) {
			return false
		}
		low, high = high+1, min(16*high, len(all))
	}
	for low < high {
		if middle := (low + high) / 2; fits(middle) {
			high = middle
		} else {
			low = middle + 1
		}
	}
	if off != high {
		fits(high)
	}
	for _, v := range slices.Backward(all[high:]) {
		v.Queue.Charge(quota.Planned, v.Releases())
	}
	*victims = all[:high]
	return true
}

// fitsNodes reports whether there is capacity on the nodes, if that matters.
func (s *search) fitsNodes() bool { return s.Nodes == nil || s.Nodes.Fits() }

// restoreUnneededVictims restores the victims that are not necessary. The preemptor did not fit without the last one,
// which remains a victim.
func (s *search) restoreUnneededVictims(victims []Victim, borrow bool) []Victim {
	for i := len(victims) - 2; i >= 0; i-- {
		v := victims[i]
		if !v.Stops() && stops(victims, v.Holder) {
			continue
		}
		s.charge(v)
		if s.fits(borrow) && s.fitsNodes() {
			victims = slices.Delete(victims, i, i+1)
		} else {
			s.release(v)
		}
	}
	return victims
}
