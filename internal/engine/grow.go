package engine

import (
	"maps"
	"math"
	"slices"
	"sort"
	"time"

	"github.com/musterhq/muster/internal/engine/elastic"
	"github.com/musterhq/muster/internal/engine/place"
	"github.com/musterhq/muster/internal/engine/quota"
	"github.com/musterhq/muster/internal/engine/reason"
	"github.com/musterhq/muster/internal/engine/waiting"
)

// startDue puts the families on the agenda in which a workload may grow by now.
func (g *growths) startDue(now time.Time) {
	for {
		key, due := g.timers.Take(waiting.Grow, now)
		if !due {
			return
		}
		if q := g.queues[key.Name]; q != nil && q.family != nil {
			q.family.enqueue()
		}
	}
}

// grow gives the elastic workloads of a family the capacity that no waiting workload can use, and those of higher
// priority the capacity of lower ones. It is the last step of a pass. It reports whether work is left.
func (g *growthPass) grow(f *family) (left bool) {
	own := ownGrowths{pass: g.pass, queues: g.inOrderOfGrowth(f)}
	g.pass.engine.holdBacks.chargeAll(f)
	defer g.pass.engine.holdBacks.releaseAll(f)
	defer own.release()
	for _, q := range own.queues {
		g.dropPlans(q)
		if !g.growsIn(q) {
			continue
		}
		if g.pass.budget <= 0 {
			return true
		}
		more, done := g.growIn(q, &own)
		if !done {
			return true
		}
		left = left || more
	}
	return left
}

// growIn is grow for one queue, whose turn it is. done is false if the budget ended before that.
func (g *growthPass) growIn(q *clusterQueue, own *ownGrowths) (left, done bool) {
	decided := len(g.pass.decisions)
	own.begin(q)
	defer func() {
		g.pass.engine.holdBacks.charge(q)
		own.end(q, len(g.pass.decisions) > decided)
	}()
	if g.growAsPlanned(q) {
		return true, false
	}
	changes := g.growthsOf(q)
	if len(changes) > 0 && own.holdBack(q) {
		changes = g.growthsOf(q)
	}
	for _, change := range changes {
		if g.pass.budget <= 0 {
			return true, false
		}
		left = !g.enlarge(change) || left
	}
	g.preemptForGrowth(q, own)
	return left, true
}

// growsIn reports whether workloads may grow in the queue.
func (g *growthPass) growsIn(q *clusterQueue) bool {
	return q.fault().Code == reason.None && g.pass.engine.mustWait(q).Code == reason.None
}

// dropPlans releases what was planned for workloads that may not grow any more.
func (g *growthPass) dropPlans(q *clusterQueue) {
	for _, w := range g.pass.engine.growths.resizableOf(q).members {
		if len(w.growing) > 0 && !w.mayGrow() {
			g.planGrowth(w, nil)
		}
	}
}

// growAsPlanned enlarges the workloads for which others had to shrink or stop, now that the pods of these are gone. A
// workload that does not get what was planned makes no others shrink before its next resize. It reports whether work
// is left.
func (g *growthPass) growAsPlanned(q *clusterQueue) (left bool) {
	t := g.pass.engine.growths.resizableOf(q)
	for i, w := range t.members {
		if len(w.growing) == 0 || g.awaitsOthers(q, t, i) {
			continue
		}
		if g.pass.budget <= 0 {
			return true
		}
		g.pass.budget--
		more := int64(t.planned[i])
		w.growthFailed = true
		g.planGrowth(w, nil)
		if free := replicasFree(q.node, t.each[i]); free > 0 {
			to := t.jobs[i].Size + int32(min(more, free))
			if to = min(to, t.jobs[i].Max); to > t.jobs[i].Size { // it may want no more by now
				g.enlarge(growth{w, t.at[i], to})
			}
		}
	}
	return false
}

// awaitsOthers reports whether pods that make room for the planned growth have not terminated yet.
func (g *growthPass) awaitsOthers(q *clusterQueue, t *resizable, i int) bool {
	w := t.members[i]
	if !fits(q.node, w.growing) && q.family.leaving() > 0 {
		return true
	}
	if w.growthAwaits == g.pass.engine.nodes.placesVersion {
		return true
	}
	if g.pass.engine.growths.podsOn(place.Now, t, i, t.planned[i]) >= g.pass.engine.growths.podsOn(place.Planned, t, i, t.planned[i]) {
		return false
	}
	w.growthAwaits, q.cramped = g.pass.engine.nodes.placesVersion, true
	return true
}

// scheduleGrowth notes that a workload of the queue may grow from the given time on.
func (g *growthPass) scheduleGrowth(q *clusterQueue, at time.Time) {
	g.pass.engine.waiting.SetEarlier(waiting.Grow, Key{Name: q.Name}, at)
}

// enlarge gives a workload as many more pods as fit on nodes, up to the given size. It reports whether these are all of
// them: otherwise there is quota left that another may use.
func (g *growthPass) enlarge(more growth) (whole bool) {
	now := more.w.held.PodSets[more.at].Count
	var found []place.NodeCount
	find := func(pods int32) bool {
		nodes, ok := g.pass.engine.nodes.moreOnNodes(more.w, more.at, pods, place.Now)
		if ok {
			found = nodes
		}
		return ok
	}
	to := more.to
	if whole = find(to - now); !whole {
		more.w.queue.cramped = true
		fewer := sort.Search(int(to-now), func(fewer int) bool { return fewer > 0 && find(to-now-int32(fewer)) })
		if to -= int32(fewer); to == now {
			return false
		}
		find(to - now)
	}
	g.pass.budget -= 2 // it costs more than an evaluation
	g.pass.resize(more.w, more.at, more.w.held.Sized(more.at, to, found), Key{})
	return whole
}

// planGrowth plans additional quota for the workload, to be used once other workloads have released it.
func (g *growthPass) planGrowth(w *workload, more quota.Vector) {
	w.growing, w.growthAwaits = more, -1
	g.pass.engine.updateCharges(w)
}

// preemptForGrowth shrinks or stops elastic workloads of lower priority for those that could be larger: a priority
// has all that it can use before a lower one has anything. The latter grow once the others' pods are gone. It handles
// one priority at a time, the highest first.
func (g *growthPass) preemptForGrowth(q *clusterQueue, own *ownGrowths) {
	t := g.pass.engine.growths.resizableOf(q)
	now := growthState{listings: q.listings, others: q.family.listings, charges: q.family.waits.Charges(), places: g.pass.engine.nodes.placesVersion, until: q.preemptionChecked.until}
	if now == q.preemptionChecked && (now.until.IsZero() || g.pass.engine.growths.now.Before(now.until)) {
		if !now.until.IsZero() {
			g.scheduleGrowth(q, now.until)
		}
		return
	}
	now.until = time.Time{}
	levels := map[int32][]int{}
	for _, i := range t.above(math.MinInt32).indices {
		if t.planned[i] > 0 {
			continue
		}
		levels[t.jobs[i].Priority] = append(levels[t.jobs[i].Priority], i)
	}
	for _, priority := range slices.Backward(slices.Sorted(maps.Keys(levels))) {
		y := t.yieldsOnceTo(priority, levels[priority])
		if y.Below() == 0 {
			continue
		}
		own.holdBack(q)
		if mine := q.holdBackOf(); mine.class != nil && mine.class.priority < priority {
			g.pass.engine.holdBacks.release(q)
		} else {
			g.pass.engine.holdBacks.charge(q)
		}
		later, any := g.preemptFor(q, t, y, levels[priority])
		if any {
			q.preemptionChecked = growthState{}
			return
		}
		if !later.IsZero() && (now.until.IsZero() || later.Before(now.until)) {
			now.until = later
		}
	}
	if !now.until.IsZero() {
		g.scheduleGrowth(q, now.until)
	}
	q.preemptionChecked = now
}

// preemptFor shrinks or stops the fewest workloads of lower priority that let those at the indices grow as far as
// possible. It reports whether there are any; later is when there may be more of them.
//
// No workload does so twice for the same one: if a workload took what another has, released it to a third and took it
// again, there would be no end.
func (g *growthPass) preemptFor(q *clusterQueue, t *resizable, y *elastic.Yielding, indices []int) (later time.Time, any bool) {
	var grown, sizes []int32
	g.pass.engine.growths.tryYields(q, t, func(trial *yieldTrial) {
		gains := func(sizes []int32) (sum int32) {
			trial.release(sizes, func() {
				trial.takeOffNodes()
				grown, sum, later = g.pass.engine.growths.grownAs(q, t, indices, func(i quota.Index) int64 { return q.node.Available(quota.Planned, i) })
			})
			return sum
		}
		if most := gains(y.Sizes(y.Below())); most > 0 && most > gains(y.Sizes(0)) {
			enough := func(sizes []int32) bool { return gains(sizes) >= most }
			sizes = y.Sizes(smallest(y.Below(), func(n int) bool { return enough(y.Sizes(n)) }))
			sizes = t.spare(sizes, enough)
			gains(sizes)
			any = true
		}
	})
	g.pass.budget -= 1 + len(indices)/elasticPerBudget
	if !any {
		return later, false
	}
	victims, yields := t.changes(q, sizes)
	by := slices.IndexFunc(grown, func(more int32) bool { return more > 0 })
	if by < 0 {
		return later, false
	}
	g.pass.budget -= len(victims) + len(yields)
	grower := t.members[indices[by]]
	if grower.preempted == nil {
		grower.preempted = map[Key]string{}
	}
	for _, v := range victims {
		grower.preempted[v.Key] = g.pass.engine.workloads[v.Key].UID
		g.pass.evictions.evict(v, grower)
	}
	for _, y := range yields {
		grower.preempted[y.w.Key] = y.w.UID
		g.pass.resize(y.w, y.at, y.given, grower.Key)
	}
	for n, more := range grown {
		if i := indices[n]; more > 0 {
			g.planGrowth(t.members[i], g.pass.engine.ledgers.vectorOfPods(&t.members[i].held.PodSets[t.at[i]], more))
		}
	}
	return later, true
}
