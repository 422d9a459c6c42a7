package flavor

import (
	"slices"

	"github.com/musterhq/muster/internal/engine/quota"
	"github.com/musterhq/muster/internal/engine/reason"
)

// maxEvaluations bounds how many flavors are evaluated to find a split.
const maxEvaluations = 2_000

// Split searches for any combination of flavors with quota for all pod sets. Assign may not find one, because it
// gives each pod set what is best for it and may leave too little for a later one. Split returns the first
// combination in the order of pod sets and flavors, and prefers one that fits now to one that fits once evicted
// workloads are gone. If there is none, the choice is NoFit and says what there would have to be more of.
func (f *Form) Split(counts []int32, q Question) Choice {
	var none Choice
	if !f.compete {
		return none
	}
	for _, least := range []Mode{Fits, Awaits} {
		s := splitter{assigner: assigner{Question: q, choice: Choice{Mode: Fits}, form: f}, counts: counts, least: least,
			evaluations: maxEvaluations}
		if s.assign(0, 0) {
			return s.result()
		}
		none.Short, none.Why = s.choice.Short, s.choice.Why
	}
	return none
}

// splitter assigns flavors to one group of one pod set after the other, and backtracks where a later one does not
// fit.
type splitter struct {
	assigner
	counts      []int32
	least       Mode
	evaluations int
	// given are the flavors so far, in the order of pod sets and groups.
	given []candidate
}

// assign finds flavors for the n-th group of the i-th pod set and all that follow.
func (s *splitter) assign(i, n int) bool {
	if i == len(s.form.sets) {
		return true
	}
	choices := s.form.sets[i].choicesOf(s.counts[i])
	if n == len(choices) {
		return s.assign(i+1, 0)
	}
	g := &choices[n]
	for at := range g.flavors {
		if s.evaluations--; s.evaluations < 0 {
			return false
		}
		c := s.evaluate(s.form.sets[i].name, g, &g.flavors[at], s.counts[i])
		if c.mode < s.least {
			if c.verdict.Code == reason.WaitingForQuota && s.choice.Why.Code == reason.None {
				s.choice.Why = reason.Reason{Code: c.verdict.Code, PodSet: s.form.sets[i].name,
					Flavors: []reason.Verdict{c.verdict}}
			}
			continue
		}
		before := len(s.taken)
		for r, index := range c.flavor.indices {
			s.taken = append(s.taken, quota.Amount{Index: index, Value: quota.Times(g.perPod[r], s.counts[i])})
		}
		s.given = append(s.given, c)
		if s.assign(i, n+1) {
			return true
		}
		s.taken, s.given = s.taken[:before], s.given[:len(s.given)-1]
	}
	return false
}

// result returns the choice once all flavors are given.
func (s *splitter) result() Choice {
	out := s.choice
	out.Short, out.Why = nil, reason.Reason{}
	next := 0
	for i, set := range s.form.sets {
		a := Assignment{PodSet: set.name, Count: s.counts[i], Flavors: map[string]string{}, Usage: map[string]int64{}}
		for n := range set.choicesOf(s.counts[i]) {
			g, c := &set.choices[n], s.given[next]
			next++
			if c.mode < out.Mode {
				out.Mode, out.Why.Code, out.Why.PodSet = c.mode, c.verdict.Code, set.name
				out.Why.Flavors = append(out.Why.Flavors, c.verdict)
			}
			out.Borrowing = max(out.Borrowing, c.borrowing)
			for r, resource := range g.resources {
				a.Flavors[resource], a.Usage[resource] = c.flavor.name, quota.Times(g.perPod[r], s.counts[i])
			}
		}
		out.Assignments = append(out.Assignments, a)
	}
	out.Usage = quota.VectorOf(s.taken...)
	return out
}

// compete reports whether two pod sets may use the same quota.
func compete(sets []formSet) bool {
	var seen []quota.Index
	shared := false
	for _, set := range sets {
		var own []quota.Index
		for _, g := range set.choices {
			for _, f := range g.flavors {
				own = append(own, f.indices...)
			}
		}
		shared = shared || slices.ContainsFunc(own, func(i quota.Index) bool { return slices.Contains(seen, i) })
		seen = append(seen, own...)
	}
	return shared
}
