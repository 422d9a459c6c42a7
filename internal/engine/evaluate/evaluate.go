package evaluate

import (
	"slices"
	"sort"

	"github.com/musterhq/muster/internal/engine/flavor"
	"github.com/musterhq/muster/internal/engine/growth"
	"github.com/musterhq/muster/internal/engine/order"
	"github.com/musterhq/muster/internal/engine/quota"
	"github.com/musterhq/muster/internal/engine/reason"
	"github.com/musterhq/muster/internal/engine/state"
	"github.com/musterhq/muster/internal/engine/waiting"
)

// Evaluate determines what can be done for the head of the class, without changing anything. A smaller count than
// requested is considered only if the full one is not available.
func (ev *Evaluator) Evaluate(c *state.Class) Outcome {
	if ev.Planning {
		ev.Trials++
	} else {
		ev.Evaluations++
	}
	form := ev.FormOf(c)
	w := ev.Workloads[c.Head().Key]
	full := ev.considerTaking(w, c, form.Full())
	reducible := form.Reducible()
	var any *anySearch
	if form.Together() > 0 && reducible > 0 && full.Verdict != state.Admissible && full.Verdict != state.Nominable {
		var found Outcome
		if found, any = ev.anyThatFit(w, c); found.Verdict != state.Hopeless {
			return found
		}
		any.note(full)
	}
	if !ev.Planning && full.Verdict != state.Admissible && full.Verdict != state.Nominable && !full.sparesQueue(c.Queue) {
		if found, yields := ev.ByYielding(w, c); yields && (len(found.Victims) == 0 || full.stopsAny()) {
			return found
		}
	}
	if reducible == 0 || full.Verdict != state.Hopeless && !full.shrinksEquals {
		return full
	}
	if any != nil {
		return ev.anyByEviction(any)
	}
	var best Outcome
	sort.Search(int(reducible), func(fewer int) bool {
		found := ev.considerTaking(w, c, form.ReducedBy(int64(fewer)+1))
		if found.Verdict == state.Hopeless || found.shrinksEquals {
			return false
		}
		best = found
		return true
	})
	if best.Verdict == state.Hopeless {
		// Report what the smallest size was short of: that is what there has to be more of.
		best = ev.considerTaking(w, c, form.ReducedBy(reducible))
	}
	return best
}

// considerTaking is consider, and does not have elastic workloads of the queue give up what running ones of higher
// priority would then grow into.
func (ev *Evaluator) considerTaking(w *state.Workload, c *state.Class, counts []int32) Outcome {
	found := ev.Consider(w, c, counts)
	if found.Verdict == state.Preempting && ev.takesFromGrowth(w, c.Queue, &found) {
		return ev.growthOutcome(found.Choice, nil,
			"what running workloads in the same ClusterQueue would give up for it is kept for those of higher priority, which could grow")
	}
	return found
}

// Consider determines what can be done for these counts of each pod set.
func (ev *Evaluator) Consider(w *state.Workload, c *state.Class, counts []int32) Outcome {
	found := ev.considerCapacity(w, c, counts)
	switch {
	case found.Verdict == state.Hopeless:
		ev.dependsOn(&found)
		return found
	case ev.Planning:
		return found
	}
	if found.Verdict != state.Preempting {
		if grower := ev.Growths.BlocksGrowth(w, c.Queue, found.Choice); grower != nil {
			return ev.growthOutcome(found.Choice, grower,
				"the free quota is kept for running workloads of higher priority in the same ClusterQueue, which are about to grow")
		}
	}
	if !ev.Starts.MayDelay(c) {
		return found
	}
	return ev.passing(w, c, counts, found)
}

// passing returns the outcome if it delays no planned start, or else one that delays none, with other flavors or
// places. If there is none, the workload waits behind the start.
func (ev *Evaluator) passing(w *state.Workload, c *state.Class, counts []int32, found Outcome) Outcome {
	delayed := ev.Starts.Delayed(w, c, &found)
	if delayed == nil {
		return found
	}
	if ev.FormOf(c).HasChoice() || ev.FormOf(c).OnNodes() {
		other := Outcome{}
		ev.Starts.Beside(c, func() { other = ev.considerCapacity(w, c, counts) })
		if other.Verdict == state.Admissible && ev.Starts.Delayed(w, c, &other) == nil &&
			ev.Growths.BlocksGrowth(w, c.Queue, other.Choice) == nil {
			return other
		}
	}
	// Where queues share quota or nodes, what fits beside the start may change with any usage.
	f := c.Queue.Family
	out := Outcome{Choice: found.Choice, Delays: delayed,
		mayChoose: len(f.Queues) > 1 || delayed.Class.Queue.Family != f}
	out.Choice.Mode, out.Choice.Short = flavor.Blocked, nil
	out.Choice.Why = reason.Reason{Code: reason.BehindReservation,
		Detail: "there is capacity, but it would delay the planned start of a workload that comes before it"}
	for i := range found.Choice.Assignments {
		if a := &found.Choice.Assignments[i]; len(a.Places) > 0 {
			out.fullFlavors = append(out.fullFlavors, ev.Nodes.PlacedBy(a))
		}
	}
	ev.dependsOn(&out)
	ev.cause.Behind = true
	return out
}

// considerCapacity is consider without regard to workloads that are to grow.
func (ev *Evaluator) considerCapacity(w *state.Workload, c *state.Class, counts []int32) Outcome {
	if ev.FormOf(c).OnNodes() {
		return ev.considerPlaces(w, c, counts)
	}
	question := ev.QuestionOf(w, c.Queue)
	found := ev.resolve(w, c, counts, ev.FormOf(c).Assign(counts, question))
	if found.Verdict != state.Hopeless {
		return found
	}
	if found.Choice.Why.Code != reason.WaitingForQuota && !ev.FormOf(c).CouldFit(counts, c.Queue.Node) {
		return found // no other choice of flavors would fit either
	}
	split := ev.FormOf(c).Split(counts, question)
	if split.Mode != flavor.NoFit {
		return ev.resolve(w, c, counts, split)
	}
	found.Choice.Short = quota.Union(found.Choice.Short, split.Short...)
	found.mayChoose = found.mayChoose || ev.mayMakeWay(c)
	if found.Choice.Why.Code == reason.ExceedsMaxQuota && split.Why.Code != reason.None {
		found.Choice.Why = split.Why // it may fit with other flavors once other workloads end
	}
	return found
}

// mayMakeWay reports whether others might be evicted for a pod set of the class if more were used, as another pod set
// would then get another flavor.
func (ev *Evaluator) mayMakeWay(c *state.Class) bool {
	return ev.FormOf(c).Competes() && c.Queue.Preemption.Allows()
}

// resolve determines what can be done with a choice of flavors.
func (ev *Evaluator) resolve(w *state.Workload, c *state.Class, counts []int32, choice flavor.Choice) Outcome {
	q := c.Queue
	switch choice.Mode {
	case flavor.Fits:
		return Outcome{Verdict: state.Admissible, Choice: choice}
	case flavor.Awaits:
		return Outcome{Verdict: state.Nominable, Choice: choice}
	case flavor.Preempts, flavor.Reclaims:
		if victims := ev.victims(w, q, choice.Usage, ShortOf(q.Node, choice.Usage)); len(victims) > 0 {
			return ev.preempting(q, choice, victims)
		}
		// Whether it may evict others depends on all that it requests, not only on what was short.
		choice.Short = quota.Union(choice.Short, choice.Usage.Indices()...)
		return Outcome{Choice: choice, mayChoose: ev.FormOf(c).HasChoice()}
	}
	return Outcome{Choice: choice}
}

// EvaluateInTurn evaluates the class as if its own queue held nothing back. If it then does not fit, but may fit within
// its queue's own quota, the class is evaluated as if nothing were held back for workloads after it either.
func (ev *Evaluator) EvaluateInTurn(c *state.Class) Outcome {
	ev.cause = waiting.Cause{}
	found := ev.evaluateInTurn(c)
	found.Cause = ev.cause
	found.Cause.Lacks = !found.Cause.Behind && found.Choice.Why.Code.MayStart()
	return found
}

// dependsOn adds a hopeless outcome to the cause of the evaluation. An evaluation tries several sizes and several ways,
// and each of them may be the one that fits later, also where the reason to wait is another one. Example: a job lacks
// quota, which a running job would give up for it, and then it lacks nodes. It waits for either.
func (ev *Evaluator) dependsOn(found *Outcome) {
	if ev.Planning {
		return // no class waits for what a plan depends on
	}
	if ev.cause.Quota == nil {
		ev.cause.Quota = slices.Clip(found.Choice.Short) // as usual, and no copy
	}
	ev.cause.Quota = quota.Union(ev.cause.Quota, found.Choice.Short...)
	for _, name := range found.fullFlavors {
		if !slices.Contains(ev.cause.Flavors, name) {
			ev.cause.Flavors = append(ev.cause.Flavors, name)
		}
	}
	ev.cause.Use = ev.cause.Use || found.mayChoose
}

// evaluateInTurn evaluates the class without what its own queue holds back, and then without what is held back for
// workloads after it.
func (ev *Evaluator) evaluateInTurn(c *state.Class) Outcome {
	found := ev.evaluateReleasing(c, c.Queue)
	if found.Verdict != state.Hopeless || len(c.Own) == 0 {
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
	if may, short := c.MayFitOwnQuota(); !may {
		ev.cause.Quota = quota.Union(ev.cause.Quota, short...)
		return found
	}
	seen := ev.evaluateReleasing(c, later...)
	switch {
	case seen.Verdict == state.Hopeless:
		return found
	case !c.Queue.FitsOwnQuota(seen.Choice.Usage):
		ev.cause.Quota = quota.Union(ev.cause.Quota, seen.Choice.Usage.Indices()...)
		return found
	}
	seen.TakesHoldBacks = true
	return seen
}

// evaluateReleasing evaluates the class as if these queues held nothing back.
func (ev *Evaluator) evaluateReleasing(c *state.Class, queues ...*state.ClusterQueue) Outcome {
	held := make([]quota.Vector, len(queues))
	for i, q := range queues {
		ev.Tree.Release(q.Name, quota.Planned, q.HeldBack)
		held[i], q.HeldBack = q.HeldBack, nil
	}
	defer func() {
		for i, q := range queues {
			q.HeldBack = held[i]
			ev.Tree.Charge(q.Name, quota.Planned, q.HeldBack)
		}
	}()
	return ev.Evaluate(c)
}

// takesFromGrowth reports whether all that the outcome evicts or shrinks are elastic workloads of the queue, and those
// of higher priority could grow less beside the workload than once these have made room: they would displace it in
// turn.
func (ev *Evaluator) takesFromGrowth(w *state.Workload, q *state.ClusterQueue, found *Outcome) (is bool) {
	if len(q.Elastic) == 0 {
		return false
	}
	t := ev.Growths.ResizableOf(q)
	if len(t.Above(w.Priority).Indices) == 0 {
		return false
	}
	sizes, ok := found.sizesAfter(t, q)
	if !ok {
		return false
	}
	ev.Growths.TryYields(q, t, func(trial *growth.YieldTrial) {
		trial.Release(sizes, func() {
			trial.TakeOffNodes()
			is = ev.Growths.BlocksGrowth(w, q, found.Choice) != nil
		})
		ev.Tried += trial.Tried
	})
	return is
}

// growthOutcome returns the outcome of a choice that is kept for other workloads of the queue, as the detail says. The
// grower is the one of them that has capacity to grow, nil if others have to make room first.
func (ev *Evaluator) growthOutcome(choice flavor.Choice, grower *state.Workload, detail string) Outcome {
	out := Outcome{Choice: choice, mayChoose: true}
	out.Choice.Mode = flavor.Blocked
	out.Choice.Short = choice.Usage.Indices()
	out.Choice.Why = reason.Reason{Code: reason.WaitingForQuota, Detail: detail}
	for i := range choice.Assignments {
		if a := &choice.Assignments[i]; len(a.Places) > 0 {
			out.fullFlavors = append(out.fullFlavors, ev.Nodes.PlacedBy(a))
		}
	}
	ev.dependsOn(&out)
	if ev.cause.Growth = true; grower != nil && ev.cause.Grower == nil {
		ev.cause.Grower = grower
	}
	return out
}

// ByYielding looks for the workloads of the queue that have to shrink or stop so that the head of the class can have
// its minimum: as few as possible, in the order of elastic.Yielding. If the minimum fits without that, ok is false.
func (ev *Evaluator) ByYielding(w *state.Workload, c *state.Class) (found Outcome, ok bool) {
	q := c.Queue
	if len(q.Elastic) == 0 {
		return Outcome{}, false
	}
	form := ev.FormOf(c)
	least := form.ReducedBy(form.Reducible())
	if form.Reducible() > 0 {
		if alone := ev.Consider(w, c, least); alone.Verdict == state.Admissible || alone.Verdict == state.Nominable {
			return Outcome{}, false
		}
	}
	t := ev.Growths.ResizableOf(q)
	y := t.YieldsTo(w.Priority)
	var sizes []int32
	ev.Growths.TryYields(q, t, func(trial *growth.YieldTrial) {
		fits := func(sizes []int32) bool {
			trial.Release(sizes, func() {
				may, short := form.MayFit(least, q.Node)
				if !may {
					found = Outcome{Choice: flavor.Choice{Short: short}}
					ev.dependsOn(&found)
					return
				}
				trial.TakeOffNodes()
				ev.Yielding, ev.YieldingIn = sizes, q
				found = ev.Consider(w, c, least)
				ev.Yielding, ev.YieldingIn = nil, nil
			})
			return found.Verdict == state.Nominable || found.Verdict == state.Admissible
		}
		if y.Len() > 0 && fits(y.Sizes(y.Len())) {
			sizes = y.Sizes(state.Smallest(y.Len(), func(n int) bool { return fits(y.Sizes(n)) }))
			if ok = fits(sizes); ok { // more free capacity need not mean more places
				sizes = t.Spare(sizes, fits)
				ok = fits(sizes)
			}
		}
		ev.Tried += trial.Tried
	})
	if !ok {
		return Outcome{}, false
	}
	found.Verdict = state.Preempting
	found.Victims, found.Yields = t.Changes(q, sizes)
	return found, true
}

// AddEntitled lists the class in its queue if it fits within the queue's own quota, and removes it otherwise.
func (ev *Evaluator) AddEntitled(c *state.Class) {
	q := c.Queue
	ev.FormOf(c)
	if len(c.Own) == 0 || c.Len() == 0 {
		q.RemoveEntitled(c)
		return
	}
	q.Entitled.Put(c)
}

// sizesAfter returns the sizes of the members once the outcome has evicted and shrunk others; ok is false if these are
// not all members.
func (o *Outcome) sizesAfter(r *state.Resizable, q *state.ClusterQueue) (sizes []int32, ok bool) {
	sizes = r.Sizes()
	for _, v := range o.Victims {
		i, known := r.Find(v.Key)
		if !known || v.Queue != q.Node {
			return nil, false
		}
		sizes[i] = 0
	}
	for _, y := range o.Yields {
		i, known := r.Find(y.Workload.Key)
		if !known || y.Workload.ClusterQueue != q {
			return nil, false
		}
		sizes[i] = y.Given.PodSets[y.At].Count
	}
	return sizes, true
}
