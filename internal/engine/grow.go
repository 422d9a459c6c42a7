package engine

import (
	"maps"
	"math"
	"slices"
	"sort"
	"time"

	"github.com/musterhq/muster/internal/engine/elastic"
	"github.com/musterhq/muster/internal/engine/growth"
	"github.com/musterhq/muster/internal/engine/nodes"
	"github.com/musterhq/muster/internal/engine/order"
	"github.com/musterhq/muster/internal/engine/place"
	"github.com/musterhq/muster/internal/engine/quota"
	"github.com/musterhq/muster/internal/engine/reason"
	"github.com/musterhq/muster/internal/engine/state"
	"github.com/musterhq/muster/internal/engine/waiting"
)

// grow gives the elastic workloads of a family the capacity that no waiting workload can use, and those of higher
// priority the capacity of lower ones. It is the last step of a pass. It reports whether work is left.
func (g *growthPass) grow(f *state.Family) (left bool) {
	own := ownGrowths{pass: g.pass, queues: g.inOrderOfGrowth(f)}
	g.engine.holdBacks.ChargeAll(f)
	defer g.engine.holdBacks.ReleaseAll(f)
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
func (g *growthPass) growIn(q *state.ClusterQueue, own *ownGrowths) (left, done bool) {
	decided := len(g.pass.decisions)
	own.begin(q)
	defer func() {
		g.engine.holdBacks.Charge(q)
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
func (g *growthPass) growsIn(q *state.ClusterQueue) bool {
	return q.Fault().Code == reason.None && g.engine.tallies.mustWait(q).Code == reason.None
}

// dropPlans releases what was planned for workloads that may not grow any more.
func (g *growthPass) dropPlans(q *state.ClusterQueue) {
	for _, w := range g.growths.ResizableOf(q).Members {
		if len(w.Growing) > 0 && !w.MayGrow() {
			g.planGrowth(w, nil)
		}
	}
}

// growAsPlanned enlarges the workloads for which others had to shrink or stop, now that the pods of these are gone. A
// workload that does not get what was planned makes no others shrink before its next resize. It reports whether work
// is left.
func (g *growthPass) growAsPlanned(q *state.ClusterQueue) (left bool) {
	t := g.growths.ResizableOf(q)
	for i, w := range t.Members {
		if len(w.Growing) == 0 || g.awaitsOthers(q, t, i) {
			continue
		}
		if g.pass.budget <= 0 {
			return true
		}
		g.pass.budget--
		more := int64(t.Planned[i])
		w.GrowthFailed = true
		g.planGrowth(w, nil)
		if free := state.ReplicasFree(q.Node, t.Each[i]); free > 0 {
			to := t.Jobs[i].Size + int32(min(more, free))
			if to = min(to, t.Jobs[i].Max); to > t.Jobs[i].Size { // it may want no more by now
				g.enlarge(growth.Growth{Workload: w, At: t.At[i], To: to})
			}
		}
	}
	return false
}

// awaitsOthers reports whether pods that make room for the planned growth have not terminated yet.
func (g *growthPass) awaitsOthers(q *state.ClusterQueue, t *state.Resizable, i int) bool {
	w := t.Members[i]
	if !state.Fits(q.Node, w.Growing) && q.Family.Leaving() > 0 {
		return true
	}
	if w.GrowthAwaits == g.engine.nodes.PlacesVersion {
		return true
	}
	if g.growths.PodsOn(place.Now, t, i, t.Planned[i]) >= g.growths.PodsOn(place.Planned, t,
		i, t.Planned[i]) {
		return false
	}
	w.GrowthAwaits, q.Cramped = g.engine.nodes.PlacesVersion, true
	return true
}

// scheduleGrowth notes that a workload of the queue may grow from the given time on.
func (g *growthPass) scheduleGrowth(q *state.ClusterQueue, at time.Time) {
	g.engine.waiting.SetEarlier(waiting.Grow, Key{Name: q.Name}, at)
}

// enlarge gives a workload as many more pods as fit on nodes, up to the given size. It reports whether these are all of
// them: otherwise there is quota left that another may use.
func (g *growthPass) enlarge(more growth.Growth) (whole bool) {
	now := more.Workload.Held.PodSets[more.At].Count
	var found []place.NodeCount
	find := func(pods int32) bool {
		nodes, ok := g.growths.MoreOnNodes(more.Workload, more.At, pods, place.Now)
		if ok {
			found = nodes
		}
		return ok
	}
	to := more.To
	if whole = find(to - now); !whole {
		more.Workload.ClusterQueue.Cramped = true
		fewer := sort.Search(int(to-now), func(fewer int) bool { return fewer > 0 && find(to-now-int32(fewer)) })
		if to -= int32(fewer); to == now {
			return false
		}
		find(to - now)
	}
	g.pass.budget -= 2 // it costs more than an evaluation
	g.pass.resize(more.Workload, more.At, more.Workload.Held.Sized(more.At, to, found), Key{})
	return whole
}

// planGrowth plans additional quota for the workload, to be used once other workloads have released it.
func (g *growthPass) planGrowth(w *state.Workload, more quota.Vector) {
	w.Growing, w.GrowthAwaits = more, -1
	g.engine.updateCharges(w)
}

// preemptForGrowth shrinks or stops elastic workloads of lower priority for those that could be larger: a priority
// has all that it can use before a lower one has anything. The latter grow once the others' pods are gone. It handles
// one priority at a time, the highest first.
func (g *growthPass) preemptForGrowth(q *state.ClusterQueue, own *ownGrowths) {
	t := g.growths.ResizableOf(q)
	now := state.GrowthState{Listings: q.Listings, Others: q.Family.Listings, Charges: q.Family.Waits.Charges(),
		Places: g.engine.nodes.PlacesVersion, Until: q.PreemptionChecked.Until}
	if now == q.PreemptionChecked && (now.Until.IsZero() || g.growths.Now.Before(now.Until)) {
		if !now.Until.IsZero() {
			g.scheduleGrowth(q, now.Until)
		}
		return
	}
	now.Until = time.Time{}
	levels := map[int32][]int{}
	for _, i := range t.Above(math.MinInt32).Indices {
		if t.Planned[i] > 0 {
			continue
		}
		levels[t.Jobs[i].Priority] = append(levels[t.Jobs[i].Priority], i)
	}
	for _, priority := range slices.Backward(slices.Sorted(maps.Keys(levels))) {
		y := t.YieldsOnceTo(priority, levels[priority])
		if y.Below() == 0 {
			continue
		}
		own.holdBack(q)
		if mine := q.HoldBackOf(); mine.Class != nil && mine.Class.ClassKey.Priority < priority {
			g.engine.holdBacks.Release(q)
		} else {
			g.engine.holdBacks.Charge(q)
		}
		later, any := g.preemptFor(q, t, y, levels[priority])
		if any {
			q.PreemptionChecked = state.GrowthState{}
			return
		}
		if !later.IsZero() && (now.Until.IsZero() || later.Before(now.Until)) {
			now.Until = later
		}
	}
	if !now.Until.IsZero() {
		g.scheduleGrowth(q, now.Until)
	}
	q.PreemptionChecked = now
}

// preemptFor shrinks or stops the fewest workloads of lower priority that let those at the indices grow as far as
// possible. It reports whether there are any; later is when there may be more of them.
//
// No workload does so twice for the same one: if a workload took what another has, released it to a third and took it
// again, there would be no end.
func (g *growthPass) preemptFor(q *state.ClusterQueue, t *state.Resizable, y *elastic.Yielding,
	indices []int) (later time.Time, any bool) {
	var grown, sizes []int32
	g.growths.TryYields(q, t, func(trial *growth.YieldTrial) {
		gains := func(sizes []int32) (sum int32) {
			trial.Release(sizes, func() {
				trial.TakeOffNodes()
				grown, sum, later = g.growths.GrownAs(q, t, indices,
					func(i quota.Index) int64 { return q.Node.Available(quota.Planned, i) })
			})
			return sum
		}
		if most := gains(y.Sizes(y.Below())); most > 0 && most > gains(y.Sizes(0)) {
			enough := func(sizes []int32) bool { return gains(sizes) >= most }
			sizes = y.Sizes(state.Smallest(y.Below(), func(n int) bool { return enough(y.Sizes(n)) }))
			sizes = t.Spare(sizes, enough)
			gains(sizes)
			any = true
		}
	})
	g.pass.budget -= 1 + len(indices)/growth.PerBudget
	if !any {
		return later, false
	}
	victims, yields := t.Changes(q, sizes)
	by := slices.IndexFunc(grown, func(more int32) bool { return more > 0 })
	if by < 0 {
		return later, false
	}
	g.pass.budget -= len(victims) + len(yields)
	grower := t.Members[indices[by]]
	if grower.Preempted == nil {
		grower.Preempted = map[Key]string{}
	}
	for _, v := range victims {
		grower.Preempted[v.Key] = g.engine.workloads[v.Key].UID
		g.pass.evictions.evict(v, grower)
	}
	for _, y := range yields {
		grower.Preempted[y.Workload.Key] = y.Workload.UID
		g.pass.resize(y.Workload, y.At, y.Given, grower.Key)
	}
	for n, more := range grown {
		if i := indices[n]; more > 0 {
			g.planGrowth(t.Members[i], g.engine.ledgers.VectorOfPods(&t.Members[i].Held.PodSets[t.At[i]], more))
		}
	}
	return later, true
}

// A job may come to want fewer pods than it has while it runs. Its workload is then shrunk as if others needed those
// pods, so that their quota is free once they are gone; it can grow again if the job wants more.

// shrinkSurplus shrinks these workloads before any other shrinks for what they have too much. One with a decision in
// flight, or a rejected one, is skipped: updateCharges notes it again once that is resolved.
func (g *growthPass) shrinkSurplus() {
	for _, key := range order.SortedKeys(g.growths.Surplus) {
		if g.pass.budget <= 0 {
			return
		}
		g.growths.Surplus.Delete(key)
		w := g.engine.workloads[key]
		at := w.ElasticSet()
		if at < 0 || !w.MayResize() || w.Assumed != state.Nothing {
			continue
		}
		g.pass.budget--
		given := g.sizedToRunning(w, at, w.HeldSet(at).Most())
		g.pass.resize(w, at, given, Key{})
		g.pass.decisions[len(g.pass.decisions)-1].Resize.Unwanted = true
	}
}

// sizedToRunning returns the admission with fewer pods, at the places that have pods as far as possible: a job keeps
// the pods that run, and may want fewer because others cannot be placed. Ranks in slices stay where they are.
func (g *growthPass) sizedToRunning(w *state.Workload, at int, to int32) *Admission {
	set := &w.Held.PodSets[at]
	given := w.Held.Sized(at, to, nil)
	if len(set.Places) > 0 && !w.PodSet(set.PodSet).Tied() {
		empty := nodes.Beyond(nodes.Merge(nil, set.Places), g.engine.nodes.Places.PodNodes(w.Key, set.PodSet, nil))
		given.PodSets[at].Places = place.Shrink(set.Places, empty, set.Count-to)
	}
	return given
}
