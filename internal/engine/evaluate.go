package engine

import (
	"sort"

	"github.com/musterhq/muster/internal/engine/flavor"
	"github.com/musterhq/muster/internal/engine/order"
	"github.com/musterhq/muster/internal/engine/quota"
	"github.com/musterhq/muster/internal/engine/reason"
	"github.com/musterhq/muster/internal/engine/state"
	"github.com/musterhq/muster/internal/engine/waiting"
)

// cause returns what a hopeless outcome depended on.
func (o *outcome) cause() waiting.Cause {
	out := waiting.Cause{Quota: o.choice.Short, Flavors: o.fullFlavors, Use: o.mayChoose, Growth: o.waitsForGrowth}
	if o.grower != nil {
		out.Grower = o.grower
	}
	return out
}

// evaluate determines what can be done for the head of the class, without changing anything. A smaller count than
// requested is considered only if the full one is not available.
func (ev *evaluator) evaluate(c *state.Class) outcome {
	ev.evaluations++
	form := ev.formOf(c)
	w := ev.workloads[c.Head().Key]
	full := ev.considerTaking(w, c, form.Full())
	reducible := form.Reducible()
	var any *anySearch
	if form.Together() > 0 && reducible > 0 && full.verdict != state.Admissible && full.verdict != state.Nominable {
		var found outcome
		if found, any = ev.anyThatFit(w, c); found.verdict != state.Hopeless {
			return found
		}
		any.note(full)
	}
	if full.verdict != state.Admissible && full.verdict != state.Nominable && !full.sparesQueue(c.Queue) {
		if found, yields := ev.byYielding(w, c); yields && (len(found.victims) == 0 || full.stopsAny()) {
			return found
		}
	}
	if reducible == 0 || full.verdict != state.Hopeless && !full.shrinksEquals {
		return full
	}
	if any != nil {
		return ev.anyByEviction(any)
	}
	var best outcome
	sort.Search(int(reducible), func(fewer int) bool {
		found := ev.considerTaking(w, c, form.ReducedBy(int64(fewer)+1))
		if found.verdict == state.Hopeless || found.shrinksEquals {
			return false
		}
		best = found
		return true
	})
	if best.verdict == state.Hopeless {
		// Report what the smallest size was short of: that is what there has to be more of.
		best = ev.considerTaking(w, c, form.ReducedBy(reducible))
		best.mayChoose = best.mayChoose || full.mayChoose
	}
	return best
}

// considerTaking is consider, and does not have elastic workloads of the queue give up what running ones of higher
// priority would then grow into.
func (ev *evaluator) considerTaking(w *state.Workload, c *state.Class, counts []int32) outcome {
	found := ev.consider(w, c, counts)
	if found.verdict == state.Preempting && ev.takesFromGrowth(w, c.Queue, &found) {
		return ev.growthOutcome(found.choice, nil,
			"what running workloads in the same ClusterQueue would give up for it is kept for those of higher priority, which could grow")
	}
	return found
}

// consider determines what can be done for these counts of each pod set.
func (ev *evaluator) consider(w *state.Workload, c *state.Class, counts []int32) outcome {
	found := ev.considerCapacity(w, c, counts)
	if found.verdict != state.Admissible && found.verdict != state.Nominable {
		return found
	}
	if grower := ev.growths.blocksGrowth(w, c.Queue, found.choice); grower != nil {
		return ev.growthOutcome(found.choice, grower,
			"the free quota is kept for running workloads of higher priority in the same ClusterQueue, which are about to grow")
	}
	return found
}

// considerCapacity is consider without regard to workloads that are to grow.
func (ev *evaluator) considerCapacity(w *state.Workload, c *state.Class, counts []int32) outcome {
	if ev.formOf(c).OnNodes() {
		return ev.considerPlaces(w, c, counts)
	}
	question := ev.questionOf(w, c.Queue)
	found := ev.resolve(w, c, counts, ev.formOf(c).Assign(counts, question))
	if found.verdict != state.Hopeless {
		return found
	}
	if found.choice.Why.Code != reason.WaitingForQuota && !ev.formOf(c).CouldFit(counts, c.Queue.Node) {
		return found // no other choice of flavors would fit either
	}
	split := ev.formOf(c).Split(counts, question)
	if split.Mode != flavor.NoFit {
		return ev.resolve(w, c, counts, split)
	}
	found.choice.Short = quota.Union(found.choice.Short, split.Short...)
	if found.choice.Why.Code == reason.ExceedsMaxQuota && split.Why.Code != reason.None {
		found.choice.Why = split.Why // it may fit with other flavors once other workloads end
	}
	return found
}

// resolve determines what can be done with a choice of flavors.
func (ev *evaluator) resolve(w *state.Workload, c *state.Class, counts []int32, choice flavor.Choice) outcome {
	q := c.Queue
	lacks := ev.lacksOf(c, counts, choice)
	switch choice.Mode {
	case flavor.Fits:
		return outcome{verdict: state.Admissible, choice: choice}
	case flavor.Awaits:
		return outcome{verdict: state.Nominable, choice: choice}
	case flavor.Preempts, flavor.Reclaims:
		if victims := ev.victims(w, q, choice.Usage, shortOf(q.Node, choice.Usage)); len(victims) > 0 {
			return ev.preempting(q, choice, victims)
		}
		// Whether it may evict others depends on all that it requests, not only on what was short.
		choice.Short = quota.Union(choice.Short, choice.Usage.Indices()...)
		return outcome{choice: choice, lacks: lacks, mayChoose: ev.formOf(c).HasChoice()}
	}
	return outcome{choice: choice, lacks: lacks}
}

// evaluateInTurn evaluates the class as if its own queue held nothing back. If it then does not fit, but may fit within
// its queue's own quota, the class is evaluated as if nothing were held back for workloads after it either.
func (ev *evaluator) evaluateInTurn(c *state.Class) outcome {
	found := ev.evaluateReleasing(c, c.Queue)
	if found.verdict != state.Hopeless || len(c.Own) == 0 || !c.MayFitOwnQuota() {
		return found
	}
	later := []*state.ClusterQueue{c.Queue}
	for _, q := range c.Queue.Family.Queues {
		if q != c.Queue && len(q.HeldBack) > 0 && order.Compare(c.Head(), q.HeldBackFor) < 0 {
			later = append(later, q)
		}
	}
	if len(later) == 1 {
		return found
	}
	if seen := ev.evaluateReleasing(c, later...); seen.verdict != state.Hopeless && c.Queue.FitsOwnQuota(seen.choice.Usage) {
		seen.takesHoldBacks = true
		return seen
	}
	return found
}

// evaluateReleasing evaluates the class as if these queues held nothing back.
func (ev *evaluator) evaluateReleasing(c *state.Class, queues ...*state.ClusterQueue) outcome {
	for _, q := range queues {
		ev.tree.Release(q.Name, quota.Planned, q.HeldBack)
	}
	defer func() {
		for _, q := range queues {
			ev.tree.Charge(q.Name, quota.Planned, q.HeldBack)
		}
	}()
	return ev.evaluate(c)
}

// takesFromGrowth reports whether all that the outcome evicts or shrinks are elastic workloads of the queue, and those of
// higher priority could grow less beside the workload than once these have made room: they would displace it in turn.
func (ev *evaluator) takesFromGrowth(w *state.Workload, q *state.ClusterQueue, found *outcome) (is bool) {
	if len(q.Elastic) == 0 {
		return false
	}
	t := ev.growths.resizableOf(q)
	if len(t.Above(w.Priority).Indices) == 0 {
		return false
	}
	sizes, ok := found.sizesAfter(t, q)
	if !ok {
		return false
	}
	ev.growths.tryYields(q, t, func(trial *yieldTrial) {
		trial.release(sizes, func() {
			trial.takeOffNodes()
			is = ev.growths.blocksGrowth(w, q, found.choice) != nil
		})
		ev.tried += trial.tried
	})
	return is
}

// growthOutcome returns the outcome of a choice that is kept for other workloads of the queue, as the detail says. The
// grower is the one of them that has capacity to grow, nil if others have to make room first.
func (ev *evaluator) growthOutcome(choice flavor.Choice, grower *state.Workload, detail string) outcome {
	out := outcome{choice: choice, waitsForGrowth: true, grower: grower, mayChoose: true}
	out.choice.Mode = flavor.Blocked
	out.choice.Short = choice.Usage.Indices()
	out.choice.Why = reason.Reason{Code: reason.WaitingForQuota, Detail: detail}
	for i := range choice.Assignments {
		if a := &choice.Assignments[i]; len(a.Places) > 0 {
			out.fullFlavors = append(out.fullFlavors, ev.nodes.PlacedBy(a))
		}
	}
	return out
}

// byYielding looks for the workloads of the queue that have to shrink or stop so that the head of the class can have its
// minimum: as few as possible, in the order of elastic.Yielding. If the minimum fits without that, ok is false.
func (ev *evaluator) byYielding(w *state.Workload, c *state.Class) (found outcome, ok bool) {
	q := c.Queue
	if len(q.Elastic) == 0 {
		return outcome{}, false
	}
	form := ev.formOf(c)
	least := form.ReducedBy(form.Reducible())
	if form.Reducible() > 0 {
		if alone := ev.consider(w, c, least); alone.verdict == state.Admissible || alone.verdict == state.Nominable {
			return outcome{}, false
		}
	}
	t := ev.growths.resizableOf(q)
	y := t.YieldsTo(w.Priority)
	var sizes []int32
	ev.growths.tryYields(q, t, func(trial *yieldTrial) {
		fits := func(sizes []int32) bool {
			trial.release(sizes, func() {
				if found = (outcome{}); form.MayFit(least, q.Node) {
					trial.takeOffNodes()
					found = ev.consider(w, c, least)
				}
			})
			return found.verdict == state.Nominable || found.verdict == state.Admissible
		}
		if y.Len() > 0 && fits(y.Sizes(y.Len())) {
			sizes = y.Sizes(state.Smallest(y.Len(), func(n int) bool { return fits(y.Sizes(n)) }))
			if ok = fits(sizes); ok { // more free capacity need not mean more places
				sizes = t.Spare(sizes, fits)
				ok = fits(sizes)
			}
		}
		ev.tried += trial.tried
	})
	if !ok {
		return outcome{}, false
	}
	found.verdict = state.Preempting
	found.victims, found.yields = t.Changes(q, sizes)
	return found, true
}

// addEntitled lists the class in its queue if it fits within the queue's own quota, and removes it otherwise.
func (ev *evaluator) addEntitled(c *state.Class) {
	q := c.Queue
	ev.formOf(c)
	if len(c.Own) == 0 || c.Len() == 0 {
		q.RemoveEntitled(c)
		return
	}
	q.Entitled.Put(c)
}

// sizesAfter returns the sizes of the members once the outcome has evicted and shrunk others; ok is false if these are
// not all members.
func (o *outcome) sizesAfter(r *state.Resizable, q *state.ClusterQueue) (sizes []int32, ok bool) {
	sizes = r.Sizes()
	for _, v := range o.victims {
		i, known := r.Find(v.Key)
		if !known || v.Queue != q.Node {
			return nil, false
		}
		sizes[i] = 0
	}
	for _, y := range o.yields {
		i, known := r.Find(y.Workload.Key)
		if !known || y.Workload.ClusterQueue != q {
			return nil, false
		}
		sizes[i] = y.Given.PodSets[y.At].Count
	}
	return sizes, true
}
