package evaluate

import (
	"slices"
	"sort"

	"github.com/musterhq/muster/internal/engine/flavor"
	"github.com/musterhq/muster/internal/engine/reason"
	"github.com/musterhq/muster/internal/engine/state"
)

// A workload may need a number of pods, whichever of its pod sets they are of: a job of nine tasks of one pod that
// starts with any eight. Its pod sets are given pods one pod set after the other, each as many as fit beside those
// before it. One of which no pod fits gets none, and holds up no other.

// anyThatFit returns what can be done for such a workload without stopping or shrinking any other. Pods go to the pod
// sets in their order. If these are too few, they go to those with the smallest pods first: where one pod of 8 GPUs
// would take the place of three small ones, and three must run, the small ones do.
func (ev *Evaluator) anyThatFit(w *state.Workload, c *state.Class) (Outcome, *anySearch) {
	s := &anySearch{evaluator: ev, w: w, class: c}
	form := ev.FormOf(c)
	if s.fill(form.InOrder()) {
		return s.best, s
	}
	s.fill(form.BySize(c.Queue.Node))
	return s.best, s
}

// anyByEviction is anyThatFit for a workload that may evict others until it has as many pods as it needs. Pods beyond
// these evict nobody. If there are too few pods all the same, it says what they are short of.
func (ev *Evaluator) anyByEviction(s *anySearch) Outcome {
	s.mayEvict = true
	if s.fill(ev.FormOf(s.class).InOrder()) {
		return s.best
	}
	return s.none()
}

// anySearch looks for the pods that a workload gets.
type anySearch struct {
	evaluator *Evaluator
	w         *state.Workload
	class     *state.Class
	mayEvict  bool
	// counts are the pods of each pod set so far, best is what can be done for them: hopeless if they are too few.
	counts []int32
	best   Outcome
	// lacking is what was short in all that was tried.
	lacking Outcome
}

// fill gives pods to the pod sets at the indices, in this order, beside those that the others need. It reports whether
// these are enough.
func (a *anySearch) fill(order []int) bool {
	form := a.evaluator.FormOf(a.class)
	a.counts, a.best = make([]int32, len(form.Full())), Outcome{}
	for i := range a.counts {
		a.counts[i], _ = form.Needs(i)
	}
	if flavor.PodsIn(a.counts) == 0 || a.try(a.counts) {
		for _, set := range order {
			a.extend(set)
		}
	}
	a.evaluator.Tried += TriedPerBudget * len(order)
	if !a.isEnough() {
		if a.best.Verdict != state.Hopeless && !a.evaluator.Planning {
			// With fewer pods of an earlier pod set there may be enough of a later one.
			a.evaluator.cause.Use = true
		}
		a.best = Outcome{}
	}
	return a.best.Verdict != state.Hopeless
}

// isEnough reports whether the workload can start with the pods so far.
func (a *anySearch) isEnough() bool {
	return flavor.PodsIn(a.counts) >= a.evaluator.FormOf(a.class).Together()
}

// extend gives the pod set at the index as many pods as fit beside the others.
func (a *anySearch) extend(set int) {
	least := a.counts[set]
	_, most := a.evaluator.FormOf(a.class).Needs(set)
	with := func(pods int32) []int32 {
		counts := slices.Clone(a.counts)
		counts[set] = pods
		return counts
	}
	if most == least || a.try(with(most)) || most == least+1 || !a.try(with(least+1)) {
		return
	}
	sort.Search(int(most-least-2), func(fewer int) bool { return a.try(with(most - 1 - int32(fewer))) })
}

// try gives the workload these pods if they are available, and reports whether they are.
func (a *anySearch) try(counts []int32) bool {
	found := a.evaluator.considerTaking(a.w, a.class, counts)
	fits := found.Verdict == state.Admissible || found.Verdict == state.Nominable
	if !fits && (found.Verdict == state.Hopeless || found.shrinksEquals || !a.mayEvict ||
		a.best.Verdict != state.Hopeless && a.isEnough()) {
		a.note(found)
		return false
	}
	a.counts, a.best = counts, found
	return true
}

// note adds what was short. Of the reasons it keeps the one that is closest to fitting: another pod set may fit where
// the first one never does.
func (a *anySearch) note(found Outcome) {
	l := &a.lacking
	if closeness(found.Choice.Why.Code) > closeness(l.Choice.Why.Code) {
		l.Choice.Why = found.Choice.Why
	}
}

// none returns the outcome if there are too few pods: it says what is short, and is looked at again when there is more
// of anything that was.
func (a *anySearch) none() Outcome {
	form := a.evaluator.FormOf(a.class)
	smallest := a.evaluator.considerTaking(a.w, a.class, form.ReducedBy(form.Reducible()))
	if smallest.Verdict != state.Hopeless && !smallest.shrinksEquals {
		return smallest // what earlier pod sets were given left too little for later ones
	}
	a.note(smallest)
	a.lacking.Choice.Usage, a.lacking.Choice.Borrowing = smallest.Choice.Usage, smallest.Choice.Borrowing
	a.lacking.Choice.Mode = min(smallest.Choice.Mode, flavor.Blocked)
	return a.lacking
}

// closeness ranks why pods do not fit: waiting may help with quota or nodes.
func closeness(code reason.Code) int {
	switch code {
	case reason.WaitingForQuota:
		return 3
	case reason.TopologyPlacementFailed:
		return 2
	case reason.None:
		return 0
	}
	return 1
}
