package preempt

import (
	"cmp"
	"slices"
	"sort"

	"github.com/musterhq/muster/internal/engine/quota"
)

// part is what is taken from a candidate at once: a number of pods that it can do without, or, if 0, all of it.
type part struct {
	candidate
	pods int32
}

// victim returns the candidate as a victim that gives this number of pods.
func (p part) victim(pods int32) Victim {
	return Victim{Holder: p.Holder, Queue: p.queue, Gives: pods, Equal: p.stays}
}

// parts lists what to take from the candidates, in order. First comes what stops no workload: nominations, and pods
// that can be done without. Then come the rest.
//
// But if a workload would take its pods back from elastic ones of lower priority in its queue, its pods are taken
// after theirs: otherwise these would have to stop anyway, only later.
func (s *search) parts() [][]part {
	lowest := map[*quota.Node]int32{}
	for _, c := range s.candidates {
		if known, ok := lowest[c.queue]; c.Pod != nil && (!ok || c.Priority < known) {
			lowest[c.queue] = c.Priority
		}
	}
	var nominated, gentle []part
	rest := make([]part, 0, len(s.candidates))
	add := func(p part) {
		if p.Nominated {
			nominated = append(nominated, p)
		} else {
			rest = append(rest, p)
		}
	}
	for _, c := range s.candidates {
		switch {
		case c.Spare == 0:
		case c.Priority == lowest[c.queue]:
			gentle = append(gentle, part{c, c.Spare})
		default:
			add(part{c, c.Spare})
		}
		if !c.stays {
			add(part{c, 0})
		}
	}
	if len(s.Fair) == 0 { // else they are in the order of their queues' shares
		slices.SortStableFunc(rest, func(a, b part) int {
			return cmp.Or(cmp.Compare(position(a.class), position(b.class)), cmp.Compare(a.rank, b.rank),
				cmp.Compare(a.Priority, b.Priority), cmp.Compare(min(b.pods, 1), min(a.pods, 1)))
		})
	}
	return [][]part{append(nominated, gentle...), rest}
}

// allowedPart returns as much of the part as may be taken, after earlier victims; ok is false if nothing may be.
func (s *search) allowedPart(p part, earlier []Victim) (v Victim, ok bool) {
	if p.pods > 0 {
		v = p.victim(p.pods)
		if p.class != sameQueue {
			v = p.victim(int32(sort.Search(int(p.pods), func(n int) bool { return !s.borrowsWithout(p, int32(n)) })))
		}
		v.Cause = p.cause()
		return v, v.Gives > 0
	}
	v = p.stop(earlier)
	switch {
	case p.class != sameQueue && !s.stillBorrows(p.candidate):
		return v, false
	case p.class == whileBorrowing && s.isOwn(p.candidate, v.Releases()):
		return v, false
	}
	v.Cause = p.cause()
	return v, true
}

// borrowsWithout reports whether a candidate of another queue may give one more pod after it gave this number.
func (s *search) borrowsWithout(p part, gave int32) bool {
	given := p.Pod.Times(gave)
	p.queue.Release(quota.Planned, given)
	defer p.queue.Charge(quota.Planned, given)
	return s.stillBorrows(p.candidate) && !(p.class == whileBorrowing && s.isOwn(p.candidate, p.Pod))
}

// stops reports whether the holder is among the victims that stop.
func stops(victims []Victim, h *Holder) bool {
	return slices.ContainsFunc(victims, func(v Victim) bool { return v.Holder == h && v.Stops() })
}

// trim reduces what shrinking victims give as far as possible, in reverse order of their choice.
func (s *search) trim(victims []Victim, enough func() bool) {
	for i := range slices.Backward(victims) {
		v := &victims[i]
		if v.Stops() || stops(victims, v.Holder) {
			continue
		}
		most := v.Gives
		give := func(pods int32) {
			s.charge(*v)
			v.Gives = pods
			s.release(*v)
		}
		fewest := sort.Search(int(most-1), func(n int) bool { give(int32(n) + 1); return enough() })
		give(int32(fewest) + 1)
	}
}

// withoutDuplicates returns the victims without duplicates: one that stops releases everything at once.
func withoutDuplicates(victims []Victim) []Victim {
	var out []Victim
	for _, v := range victims {
		if v.Stops() || !stops(victims, v.Holder) {
			v.gave = 0
			out = append(out, v)
		}
	}
	return out
}
