package engine

import (
	"slices"
	"sort"

	"github.com/musterhq/muster/internal/engine/flavor"
	"github.com/musterhq/muster/internal/engine/order"
	"github.com/musterhq/muster/internal/engine/quota"
	"github.com/musterhq/muster/internal/engine/reason"
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
func (ev *evaluator) evaluate(c *class) outcome {
	ev.evaluations++
	form := ev.formOf(c)
	w := ev.workloads[c.Head().Key]
	full := ev.considerTaking(w, c, form.Full())
	reducible := form.Reducible()
	var any *anySearch
	if form.Together() > 0 && reducible > 0 && full.verdict != admissible && full.verdict != nominable {
		var found outcome
		if found, any = ev.anyThatFit(w, c); found.verdict != hopeless {
			return found
		}
		any.note(full)
	}
	if full.verdict != admissible && full.verdict != nominable && !full.sparesQueue(c.queue) {
		if found, yields := ev.byYielding(w, c); yields && (len(found.victims) == 0 || full.stopsAny()) {
			return found
		}
	}
	if reducible == 0 || full.verdict != hopeless && !full.shrinksEquals {
		return full
	}
	if any != nil {
		return ev.anyByEviction(any)
	}
	var best outcome
	sort.Search(int(reducible), func(fewer int) bool {
		found := ev.considerTaking(w, c, form.ReducedBy(int64(fewer)+1))
		if found.verdict == hopeless || found.shrinksEquals {
			return false
		}
		best = found
		return true
	})
	if best.verdict == hopeless {
		// Report what the smallest size was short of: that is what there has to be more of.
		best = ev.considerTaking(w, c, form.ReducedBy(reducible))
		best.mayChoose = best.mayChoose || full.mayChoose
	}
	return best
}

// considerTaking is consider, and does not have elastic workloads of the queue give up what running ones of higher
// priority would then grow into.
func (ev *evaluator) considerTaking(w *workload, c *class, counts []int32) outcome {
	found := ev.consider(w, c, counts)
	if found.verdict == preempting && ev.takesFromGrowth(w, c.queue, &found) {
		return ev.growthOutcome(found.choice, nil,
			"what running workloads in the same ClusterQueue would give up for it is kept for those of higher priority, which could grow")
	}
	return found
}

// consider determines what can be done for these counts of each pod set.
func (ev *evaluator) consider(w *workload, c *class, counts []int32) outcome {
	found := ev.considerCapacity(w, c, counts)
	if found.verdict != admissible && found.verdict != nominable {
		return found
	}
	if grower := ev.growths.blocksGrowth(w, c.queue, found.choice); grower != nil {
		return ev.growthOutcome(found.choice, grower,
			"the free quota is kept for running workloads of higher priority in the same ClusterQueue, which are about to grow")
	}
	return found
}

// considerCapacity is consider without regard to workloads that are to grow.
func (ev *evaluator) considerCapacity(w *workload, c *class, counts []int32) outcome {
	if ev.formOf(c).OnNodes() {
		return ev.considerPlaces(w, c, counts)
	}
	question := ev.questionOf(w, c.queue)
	found := ev.resolve(w, c, counts, ev.formOf(c).Assign(counts, question))
	if found.verdict != hopeless {
		return found
	}
	if found.choice.Why.Code != reason.WaitingForQuota && !ev.formOf(c).CouldFit(counts, c.queue.node) {
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
func (ev *evaluator) resolve(w *workload, c *class, counts []int32, choice flavor.Choice) outcome {
	q := c.queue
	lacks := ev.lacksOf(c, counts, choice)
	switch choice.Mode {
	case flavor.Fits:
		return outcome{verdict: admissible, choice: choice}
	case flavor.Awaits:
		return outcome{verdict: nominable, choice: choice}
	case flavor.Preempts, flavor.Reclaims:
		if victims := ev.victims(w, q, choice.Usage, shortOf(q.node, choice.Usage)); len(victims) > 0 {
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
func (ev *evaluator) evaluateInTurn(c *class) outcome {
	found := ev.evaluateReleasing(c, c.queue)
	if found.verdict != hopeless || len(c.own) == 0 || !c.mayFitOwnQuota() {
		return found
	}
	later := []*clusterQueue{c.queue}
	for _, q := range c.queue.family.queues {
		if q != c.queue && len(q.heldBack) > 0 && order.Compare(c.Head(), q.heldBackFor) < 0 {
			later = append(later, q)
		}
	}
	if len(later) == 1 {
		return found
	}
	if seen := ev.evaluateReleasing(c, later...); seen.verdict != hopeless && c.queue.fitsOwnQuota(seen.choice.Usage) {
		seen.takesHoldBacks = true
		return seen
	}
	return found
}

// evaluateReleasing evaluates the class as if these queues held nothing back.
func (ev *evaluator) evaluateReleasing(c *class, queues ...*clusterQueue) outcome {
	for _, q := range queues {
		ev.tree.Release(q.Name, quota.Planned, q.heldBack)
	}
	defer func() {
		for _, q := range queues {
			ev.tree.Charge(q.Name, quota.Planned, q.heldBack)
		}
	}()
	return ev.evaluate(c)
}

// fitsOwnQuota reports whether the amounts fit within the queue's own quota, beside its planned usage without what
// it holds back.
func (cq *clusterQueue) fitsOwnQuota(v quota.Vector) bool {
	return !slices.ContainsFunc(v, func(a quota.Amount) bool { return !cq.withinOwnQuota(a.Index, a.Value) })
}

func (cq *clusterQueue) withinOwnQuota(i quota.Index, amount int64) bool {
	return cq.node.Over(quota.Planned, i, quota.Sub(amount, cq.heldBack.Of(i))) == 0
}

// mayFitOwnQuota reports whether there may be flavors with which the fewest pods would be within fitsOwnQuota. Where a
// queue's own quota is in use, that spares a search, which would release and charge what all other queues hold back.
func (c *class) mayFitOwnQuota() bool {
	return c.form.EachMayFit(c.form.ReducedBy(c.form.Reducible()), c.queue.withinOwnQuota)
}

// takesFromGrowth reports whether all that the outcome evicts or shrinks are elastic workloads of the queue, and those of
// higher priority could grow less beside the workload than once these have made room: they would displace it in turn.
func (ev *evaluator) takesFromGrowth(w *workload, q *clusterQueue, found *outcome) (is bool) {
	if len(q.elastic) == 0 {
		return false
	}
	t := ev.growths.resizableOf(q)
	if len(t.above(w.Priority).indices) == 0 {
		return false
	}
	sizes, ok := t.sizesAfter(q, found)
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
func (ev *evaluator) growthOutcome(choice flavor.Choice, grower *workload, detail string) outcome {
	out := outcome{choice: choice, waitsForGrowth: true, grower: grower, mayChoose: true}
	out.choice.Mode = flavor.Blocked
	out.choice.Short = choice.Usage.Indices()
	out.choice.Why = reason.Reason{Code: reason.WaitingForQuota, Detail: detail}
	for i := range choice.Assignments {
		if a := &choice.Assignments[i]; len(a.Places) > 0 {
			out.fullFlavors = append(out.fullFlavors, ev.nodes.placedBy(a))
		}
	}
	return out
}

// byYielding looks for the workloads of the queue that have to shrink or stop so that the head of the class can have its
// minimum: as few as possible, in the order of elastic.Yielding. If the minimum fits without that, ok is false.
func (ev *evaluator) byYielding(w *workload, c *class) (found outcome, ok bool) {
	q := c.queue
	if len(q.elastic) == 0 {
		return outcome{}, false
	}
	form := ev.formOf(c)
	least := form.ReducedBy(form.Reducible())
	if form.Reducible() > 0 {
		if alone := ev.consider(w, c, least); alone.verdict == admissible || alone.verdict == nominable {
			return outcome{}, false
		}
	}
	t := ev.growths.resizableOf(q)
	y := t.yieldsTo(w.Priority)
	var sizes []int32
	ev.growths.tryYields(q, t, func(trial *yieldTrial) {
		fits := func(sizes []int32) bool {
			trial.release(sizes, func() {
				if found = (outcome{}); form.MayFit(least, q.node) {
					trial.takeOffNodes()
					found = ev.consider(w, c, least)
				}
			})
			return found.verdict == nominable || found.verdict == admissible
		}
		if y.Len() > 0 && fits(y.Sizes(y.Len())) {
			sizes = y.Sizes(smallest(y.Len(), func(n int) bool { return fits(y.Sizes(n)) }))
			if ok = fits(sizes); ok { // more free capacity need not mean more places
				sizes = t.spare(sizes, fits)
				ok = fits(sizes)
			}
		}
		ev.tried += trial.tried
	})
	if !ok {
		return outcome{}, false
	}
	found.verdict = preempting
	found.victims, found.yields = t.changes(q, sizes)
	return found, true
}

// sizesAfter returns the sizes of the members once the outcome has evicted and shrunk others; ok is false if these are
// not all members.
func (r *resizable) sizesAfter(q *clusterQueue, found *outcome) (sizes []int32, ok bool) {
	sizes = r.sizes()
	for _, v := range found.victims {
		i, known := r.find(v.Key)
		if !known || v.Queue != q.node {
			return nil, false
		}
		sizes[i] = 0
	}
	for _, y := range found.yields {
		i, known := r.find(y.w.Key)
		if !known || y.w.queue != q {
			return nil, false
		}
		sizes[i] = y.given.PodSets[y.at].Count
	}
	return sizes, true
}

// addEntitled lists the class in its queue if it fits within the queue's own quota, and removes it otherwise.
func (ev *evaluator) addEntitled(c *class) {
	q := c.queue
	ev.formOf(c)
	if len(c.own) == 0 || c.Len() == 0 {
		q.removeEntitled(c)
		return
	}
	q.entitled.Put(c)
}
