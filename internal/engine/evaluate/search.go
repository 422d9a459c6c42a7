package evaluate

import (
	"slices"

	"github.com/musterhq/muster/internal/engine/flavor"
	"github.com/musterhq/muster/internal/engine/nodes"
	"github.com/musterhq/muster/internal/engine/place"
	"github.com/musterhq/muster/internal/engine/place/find"
	"github.com/musterhq/muster/internal/engine/quota"
	"github.com/musterhq/muster/internal/engine/reason"
	"github.com/musterhq/muster/internal/engine/state"
)

// A flavor whose pods are placed on nodes needs quota, like any flavor, and then capacity on nodes for all pods
// together. A flavor with quota but without capacity is excluded for that pod set, and flavors are chosen again.

// search looks for flavors and places for one workload with given counts of each pod set.
type search struct {
	evaluator *Evaluator
	w         *state.Workload
	class     *state.Class
	counts    []int32
	// excluded are the flavors without places; short is all quota that was short in the process, and fullFlavors the
	// flavors whose nodes lacked capacity.
	excluded    map[flavor.PodSetFlavor]reason.Verdict
	short       []quota.Index
	fullFlavors []string
	// mayChoose is set as in outcome.
	mayChoose bool
	// postponed are choices for which others might be preempted if no flavor fits without preemption.
	postponed []flavor.Choice
}

// considerPlaces determines what can be done for these counts of each pod set if some pods are placed on nodes.
func (ev *Evaluator) considerPlaces(w *state.Workload, c *state.Class, counts []int32) Outcome {
	s := &search{evaluator: ev, w: w, class: c, counts: counts, excluded: map[flavor.PodSetFlavor]reason.Verdict{}}
	for {
		choice := s.choose()
		s.note(choice.Short)
		if choice.Mode <= flavor.Blocked {
			return s.lastResort(choice)
		}
		found, fault := s.fit(choice)
		if fault == nil {
			return found
		}
		if !s.exclude(choice, fault) {
			return s.lastResort(choice)
		}
	}
}

// choose chooses flavors by quota.
func (s *search) choose() flavor.Choice {
	choice := s.class.Form.Assign(s.counts, s.question())
	if choice.Mode > flavor.Blocked {
		return choice
	}
	if split := s.split(); split.Mode != flavor.NoFit {
		return split
	}
	return choice
}

// split chooses flavors that have quota for all pod sets together.
func (s *search) split() flavor.Choice {
	split := s.class.Form.Split(s.counts, s.question())
	s.note(split.Short)
	return split
}

func (s *search) question() flavor.Question {
	question := s.evaluator.QuestionOf(s.w, s.class.Queue)
	question.Excluded = s.excluded
	return question
}

// fit looks for places for a choice. The Shortfall says why there are none.
func (s *search) fit(choice flavor.Choice) (Outcome, *find.Shortfall) {
	if fault := s.splitsGroup(choice); fault != nil {
		return Outcome{}, fault
	}
	asks := s.evaluator.Nodes.AsksOf(s.class.Shape.PodSets, choice.Assignments, s.w.Avoid)
	if choice.Mode == flavor.Preempts || choice.Mode == flavor.Reclaims {
		return s.byPreemption(choice, asks, nil)
	}
	verdict, ledger := state.Admissible, place.Now
	if choice.Mode == flavor.Awaits {
		verdict, ledger = state.Nominable, place.Planned
	}
	if len(asks) == 0 {
		return Outcome{Verdict: verdict, Choice: choice}, nil
	}
	if verdict == state.Admissible && s.evaluator.Nodes.Departing > 0 {
		if found, ok := s.evaluator.Nodes.Finder.TryFind(asks, place.Now); ok {
			return placedAt(verdict, choice, found), nil
		}
		verdict, ledger = state.Nominable, place.Planned
	}
	found, fault := s.evaluator.Nodes.Finder.Find(asks, ledger)
	switch {
	case fault == nil:
		return placedAt(verdict, choice, found), nil
	case s.class.Queue.OnDemand && !s.evaluator.Nodes.Finder.EverFits(asks):
		if choice.Mode == flavor.Fits {
			verdict = state.Admissible
		}
		return Outcome{Verdict: verdict, Choice: choice}, nil
	case !s.class.Queue.Fungibility.NextBeforePreempting:
		return s.byPreemption(choice, asks, fault)
	}
	s.postponed = append(s.postponed, choice)
	return Outcome{}, fault
}

// placedAt returns the outcome of a choice with these places.
func placedAt(v state.Verdict, choice flavor.Choice, places []place.Assignment) Outcome {
	choice.Assignments = nodes.WithPlaces(choice.Assignments, places)
	return Outcome{Verdict: v, Choice: choice}
}

// splitsGroup returns a Shortfall if the choice gives pod sets of one group different flavors. It is for the pod set
// whose flavor the queue tries first: the other pod set was refused that flavor already.
func (s *search) splitsGroup(choice flavor.Choice) *find.Shortfall {
	for i, ps := range s.class.Shape.PodSets {
		for j := range i {
			other := s.class.Shape.PodSets[j]
			if ps.Topology == nil || other.Topology == nil || ps.Topology.Group == "" ||
				ps.Topology.Group != other.Topology.Group {
				continue
			}
			first, second := &choice.Assignments[j], &choice.Assignments[i]
			if first.Count == 0 || second.Count == 0 {
				continue // it has no pods to be near the others
			}
			if a, b := s.evaluator.Nodes.PlacedBy(first), s.evaluator.Nodes.PlacedBy(second); a != b && a != "" && b != "" {
				has, flavor := other.Name, a
				if s.class.Queue.TriesBefore(b, a) {
					has, flavor = ps.Name, b
				}
				return &find.Shortfall{PodSet: has, Flavor: flavor, Mistake: "pod sets " + other.Name + " and " + ps.Name +
					" must get one flavor, and flavor " + flavor + " does not have enough quota for both"}
			}
		}
	}
	return nil
}

// exclude excludes the flavor that has no places. It reports whether another choice is possible then.
func (s *search) exclude(choice flavor.Choice, fault *find.Shortfall) bool {
	at := flavor.PodSetFlavor{PodSet: fault.PodSet, Flavor: fault.Flavor}
	if _, again := s.excluded[at]; again || fault.Flavor == "" {
		return false
	}
	s.excluded[at] = reason.Verdict{Flavor: fault.Flavor, Code: reason.TopologyPlacementFailed, Detail: fault.Message()}
	if !slices.Contains(s.fullFlavors, fault.Flavor) {
		s.fullFlavors = append(s.fullFlavors, fault.Flavor)
	}
	if s.class.Queue.Preemption.Allows() {
		s.note(s.indicesOf(choice)) // a workload that comes to hold any of that might be evicted
	}
	return true
}

// note adds to what was short.
func (s *search) note(short []quota.Index) {
	s.short = quota.Union(s.short, short...)
}

// indicesOf returns the quota that the choice takes for pods placed on nodes.
func (s *search) indicesOf(choice flavor.Choice) []quota.Index {
	return slices.DeleteFunc(choice.Usage.Indices(), func(i quota.Index) bool {
		return s.evaluator.Nodes.Flavors[s.evaluator.Tree.Name(i).Flavor].Topology == ""
	})
}

// lastResort returns the outcome if no flavor has both quota and places: others may have to be evicted.
func (s *search) lastResort(last flavor.Choice) Outcome {
	for _, choice := range s.postponed {
		asks := s.evaluator.Nodes.AsksOf(s.class.Shape.PodSets, choice.Assignments, s.w.Avoid)
		if found, fault := s.byPreemption(choice, asks, &find.Shortfall{}); fault == nil {
			return found
		}
	}
	out := Outcome{Choice: last, mayChoose: s.mayChoose || s.evaluator.mayMakeWay(s.class), fullFlavors: s.fullFlavors}
	out.Choice.Mode = min(out.Choice.Mode, flavor.Blocked)
	out.Choice.Short = s.short
	return out
}

// byPreemption looks for victims without which there are both quota and capacity on nodes. fault is why there are no
// places without preemption, nil if quota was short.
func (s *search) byPreemption(choice flavor.Choice, asks []place.Ask,
	fault *find.Shortfall) (Outcome, *find.Shortfall) {
	w, q := s.w, s.class.Queue
	short := ShortOf(q.Node, choice.Usage)
	if fault != nil {
		short = quota.Union(short, s.indicesOf(choice)...)
		if slices.ContainsFunc(short, func(i quota.Index) bool { return !MayPreempt(q, i, choice.Usage.Of(i)) }) {
			return Outcome{}, fault
		}
	}
	p := s.evaluator.Preemptor(w, q, choice.Usage, short)
	if len(asks) == 0 || fault == nil {
		switch victims := s.evaluator.VictimsOf(p); {
		case len(victims) == 0:
			return s.hopeless(choice), nil // quota is short, whatever the nodes have
		case len(asks) == 0:
			return s.evaluator.preempting(q, choice, victims), nil
		}
	}
	if victims, places := s.evaluator.SearchOnNodes(p, asks); len(victims) > 0 {
		choice.Assignments = nodes.WithPlaces(choice.Assignments, places)
		return s.evaluator.preempting(q, choice, victims), nil
	}
	if fault == nil {
		_, fault = s.evaluator.Nodes.Finder.Find(asks, place.Planned)
	}
	return Outcome{}, fault
}

// hopeless returns the outcome of a choice for whose quota no workload can be evicted.
func (s *search) hopeless(choice flavor.Choice) Outcome {
	// Whether it may evict others depends on all that it requests, not only on what was short.
	s.note(choice.Usage.Indices())
	s.mayChoose = s.class.Form.HasChoice()
	if split := s.split(); split.Mode != flavor.NoFit {
		if found, fault := s.fit(split); fault == nil {
			return found
		}
	}
	return s.lastResort(choice)
}
