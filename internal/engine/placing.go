package engine

import (
	"slices"

	"github.com/musterhq/muster/internal/engine/flavor"
	"github.com/musterhq/muster/internal/engine/place"
	"github.com/musterhq/muster/internal/engine/preempt"
	"github.com/musterhq/muster/internal/engine/quota"
	"github.com/musterhq/muster/internal/engine/reason"
)

// Two things are asked of a flavor whose pods are placed on nodes: quota, as of any, and
// then room on the nodes for all pods together. A flavor that has the one and not the
// other is taken out for that pod set, and flavors are chosen again.

// search is the way of one workload to flavors and places, for so many pods of each pod
// set.
type search struct {
	*Engine
	w      *workload
	class  *class
	counts []int32
	// excluded are flavors without places, short all quota that was short of on the way,
	// wants the flavors whose nodes were, and lacks what those were short of.
	excluded map[flavor.PodSetFlavor]reason.Verdict
	short    []quota.Index
	wants    []string
	lacks    []quota.FlavorResource
	// rest are choices for which others might be preempted, if no flavor does without.
	rest []flavor.Choice
}

// considerPlaces finds out what can be done for so many pods of each pod set where some
// may be placed on nodes.
func (e *Engine) considerPlaces(w *workload, c *class, counts []int32) outcome {
	s := &search{Engine: e, w: w, class: c, counts: counts, excluded: map[flavor.PodSetFlavor]reason.Verdict{}}
	for {
		choice := s.choose()
		s.note(choice.Short)
		if choice.Mode <= flavor.Blocked {
			return s.otherwise(choice)
		}
		found, fault := s.fit(choice)
		if fault == nil {
			return found
		}
		if !s.exclude(choice, fault) {
			return s.otherwise(choice)
		}
	}
}

// choose asks for flavors by their quota.
func (s *search) choose() flavor.Choice {
	choice := s.class.form.Assign(s.counts, s.question())
	if choice.Mode > flavor.Blocked {
		return choice
	}
	if split := s.split(); split.Mode != flavor.NoFit {
		return split
	}
	return choice
}

// split asks for any flavors that have quota for all pod sets together.
func (s *search) split() flavor.Choice {
	split := s.class.form.Split(s.counts, s.question())
	s.note(split.Short)
	return split
}

func (s *search) question() flavor.Question {
	question := s.questionOf(s.w, s.class.queue)
	question.Excluded = s.excluded
	return question
}

// fit looks for places for a choice; a fault says why there are none.
func (s *search) fit(choice flavor.Choice) (outcome, *place.Shortfall) {
	if fault := s.divided(choice); fault != nil {
		return outcome{}, fault
	}
	asks := s.asksOf(s.class.shape.podSets, choice.Assignments, s.w.avoid.nodes)
	if choice.Mode == flavor.Preempts || choice.Mode == flavor.Reclaims {
		return s.byPreemption(choice, asks, nil)
	}
	verdict, ledger := admissible, place.Now
	if choice.Mode == flavor.Awaits {
		verdict, ledger = promisable, place.Planned
	}
	if len(asks) == 0 {
		return outcome{verdict: verdict, choice: choice}, nil
	}
	found, fault := s.places.Find(asks, ledger)
	if fault != nil && verdict == admissible && s.departing > 0 {
		verdict = promisable
		found, fault = s.places.Find(asks, place.Planned)
	}
	switch {
	case fault == nil:
		choice.Assignments = withPlaces(choice.Assignments, found)
		return outcome{verdict: verdict, choice: choice}, nil
	case s.class.queue.OnDemand && !s.places.EverFits(asks):
		if choice.Mode == flavor.Fits {
			verdict = admissible
		}
		return outcome{verdict: verdict, choice: choice}, nil
	case !s.class.queue.Fungibility.NextBeforePreempting:
		return s.byPreemption(choice, asks, fault)
	}
	s.rest = append(s.rest, choice)
	return outcome{}, fault
}

// divided faults a choice that gives pod sets of one group different flavors.
func (s *search) divided(choice flavor.Choice) *place.Shortfall {
	for i, ps := range s.class.shape.podSets {
		for j := range i {
			other := s.class.shape.podSets[j]
			if ps.Topology == nil || other.Topology == nil || ps.Topology.Group == "" || ps.Topology.Group != other.Topology.Group {
				continue
			}
			first, second := &choice.Assignments[j], &choice.Assignments[i]
			if a, b := s.placedBy(first), s.placedBy(second); a != b && a != "" && b != "" {
				return &place.Shortfall{PodSet: other.Name, Flavor: a, Mistake: "pod sets " + other.Name + " and " + ps.Name +
					" go together, and flavor " + a + " has not enough quota for both"}
			}
		}
	}
	return nil
}

// exclude takes the flavor that has no places out. It reports whether there is another
// choice to be made then.
func (s *search) exclude(choice flavor.Choice, fault *place.Shortfall) bool {
	at := flavor.PodSetFlavor{PodSet: fault.PodSet, Flavor: fault.Flavor}
	if _, again := s.excluded[at]; again || fault.Flavor == "" {
		return false
	}
	s.excluded[at] = reason.Verdict{Flavor: fault.Flavor, Code: reason.TopologyPlacementFailed, Detail: fault.Message()}
	if !slices.Contains(s.wants, fault.Flavor) {
		s.wants = append(s.wants, fault.Flavor)
	}
	if s.class.queue.Strategy == ByResource {
		for _, resource := range fault.Resources {
			s.lacks = append(s.lacks, quota.FlavorResource{Flavor: fault.Flavor, Resource: resource})
		}
	}
	if s.class.queue.Preemption.Allows() {
		s.note(s.indicesOf(choice)) // whoever comes to hold any of that might be evicted
	}
	return true
}

// note adds to what was short.
func (s *search) note(short []quota.Index) {
	for _, i := range short {
		if !slices.Contains(s.short, i) {
			s.short = append(s.short, i)
		}
	}
}

// indicesOf are the quotas that the pods of a choice take which are placed on nodes.
func (s *search) indicesOf(choice flavor.Choice) []quota.Index {
	return slices.DeleteFunc(choice.Usage.Indices(), func(i quota.Index) bool {
		return s.flavors[s.tree.Name(i).Flavor].Topology == ""
	})
}

// otherwise is what can be done where no flavor has both quota and places: others may
// have to go.
func (s *search) otherwise(last flavor.Choice) outcome {
	for _, choice := range s.rest {
		asks := s.asksOf(s.class.shape.podSets, choice.Assignments, s.w.avoid.nodes)
		if found, fault := s.byPreemption(choice, asks, &place.Shortfall{}); fault == nil {
			return found
		}
	}
	out := outcome{choice: last, wants: s.wants, lacks: s.lacksOf(s.class, s.counts, last)}
	if s.class.queue.Strategy == ByResource {
		if out.lacks = append(out.lacks, s.lacks...); len(out.lacks) > 0 && !s.couldRun() {
			out.lacks, out.wants = nil, s.wants
		}
	}
	out.choice.Mode = min(out.choice.Mode, flavor.Blocked)
	out.choice.Short = s.short
	return out
}

// mostWays bounds in how many ways it is tried to give pod sets flavors on which they could
// run together.
const mostWays = 16

// couldRun reports whether there would be quota and room on the nodes if nothing ran:
// whatever is in use, so that the answer is the same until there are other nodes. For
// those it waits where there are none, too.
func (s *search) couldRun() bool {
	ways := 0
	for given := range s.class.form.Possible(s.counts, s.class.queue.node) {
		asks := s.asksOf(s.class.shape.podSets, given, s.w.avoid.nodes)
		if ways++; len(asks) == 0 || ways > mostWays || s.places.EverFits(asks) {
			return true
		}
		for _, ask := range asks {
			if !slices.Contains(s.wants, ask.Flavor) {
				s.wants = append(s.wants, ask.Flavor)
			}
		}
	}
	return false
}

// byPreemption looks for those who have to go so that there is both quota and room on
// the nodes. fault is that of the places without anybody gone, nil if it was quota that
// was short.
func (s *search) byPreemption(choice flavor.Choice, asks []place.Ask, fault *place.Shortfall) (outcome, *place.Shortfall) {
	w, q := s.w, s.class.queue
	short := shortOf(q.node, choice.Usage)
	if fault != nil {
		for _, i := range s.indicesOf(choice) {
			if !slices.Contains(short, i) {
				short = append(short, i)
			}
		}
		if slices.ContainsFunc(short, func(i quota.Index) bool { return !mayPreempt(q, i, choice.Usage.Of(i)) }) {
			return outcome{}, fault
		}
	}
	p := s.preemptor(w, q, choice.Usage, short)
	if len(asks) == 0 || fault == nil {
		switch victims := s.search(p); {
		case len(victims) == 0:
			return s.hopeless(choice), nil // it is the quota, whatever there is on nodes
		case len(asks) == 0:
			return s.preempting(q, choice, victims), nil
		}
	}
	if victims, places := s.searchOnNodes(p, asks); len(victims) > 0 {
		choice.Assignments = withPlaces(choice.Assignments, places)
		return s.preempting(q, choice, victims), nil
	}
	if fault == nil {
		_, fault = s.places.Find(asks, place.Planned)
	}
	return outcome{}, fault
}

// hopeless is the outcome of a choice whose quota nobody can be evicted for.
func (s *search) hopeless(choice flavor.Choice) outcome {
	// Whether it may evict others depends on all that it asks for, not only on what was
	// short.
	s.note(choice.Usage.Indices())
	if split := s.split(); split.Mode != flavor.NoFit {
		if found, fault := s.fit(split); fault == nil {
			return found
		}
	}
	return s.otherwise(choice)
}

// search finds the victims of a preemptor.
func (e *Engine) search(p preempt.Preemptor) []preempt.Victim {
	return preempt.Search(&e.tree, p, func(n *quota.Node) []*preempt.Holder { return e.queues[n.Name()].holders })
}

// searchOnNodes finds those without whom there are both quota and places, with these places; nobody if nothing helps.
func (e *Engine) searchOnNodes(p preempt.Preemptor, asks []place.Ask) (victims []preempt.Victim, places []place.Assignment) {
	room := &roomOnNodes{Engine: e, asks: asks}
	p.Room = room
	e.places.Try(func() {
		victims = e.search(p)
		for i := range victims {
			room.Without(victims[i].Holder, victims[i].Without())
		}
		if len(victims) > 0 && !room.Fits() {
			victims = nil
		}
	})
	return victims, room.found
}

// roomOnNodes asks the map of places on behalf of a search for victims.
type roomOnNodes struct {
	*Engine
	asks []place.Ask
	// found is where there was room last, and searches how often that had to be searched.
	found    []place.Assignment
	searches int
}

// mostSearches bounds how long one search for victims takes: who might be spared after
// that goes, unless the places found last show that he need not.
const mostSearches = 64

// Try is part of preempt.Room.
func (r *roomOnNodes) Try(f func()) { r.places.Try(f) }

// Without is part of preempt.Room.
func (r *roomOnNodes) Without(h *preempt.Holder, pods int32) {
	w := r.workloads[h.Key]
	has := w.placed
	switch at := w.elasticSet(); {
	case pods == 0:
	case pods < preempt.All:
		if !w.held.onNodes() && r.podCounts[w.Key] == 0 {
			return
		}
		has = placed{by: w.held.sized(at, w.held.PodSets[at].Count-pods, nil)}
	case has.by == nil && w.held != nil:
		has = placed{by: w.held, leaving: true} // its pods may be on nodes all the same
	case has.promised:
		has = r.leftBy(w)
	default:
		has.leaving = true
	}
	r.places.Hold(h.Key, r.holding(w, has))
}

// Fits is part of preempt.Room.
func (r *roomOnNodes) Fits() bool {
	if r.found != nil && r.places.FitsAt(r.asks, r.found, place.Planned) {
		return true
	}
	if r.searches == mostSearches {
		return false
	}
	r.searches++
	found, fault := r.places.Find(r.asks, place.Planned)
	if fault == nil {
		r.found = found
	}
	return fault == nil
}
