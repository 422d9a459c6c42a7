package engine

import (
	"cmp"
	"math"
	"slices"

	"github.com/musterhq/muster/internal/engine/growth"
	"github.com/musterhq/muster/internal/engine/place"
	"github.com/musterhq/muster/internal/engine/quota"
	"github.com/musterhq/muster/internal/engine/state"
	"github.com/musterhq/muster/internal/engine/waiting"
)

// Workloads of several queues that share quota grow beside each other: the highest priority first, and each queue into
// its own quota before others borrow it. A queue does not get back what a workload of another one has grown into,
// except for workloads that wait, where its policy allows that.

// inOrderOfGrowth returns the queues of the family with elastic workloads, those with the highest priority that could
// grow first; of equal ones, those where such a workload need not rest.
func (g *growthPass) inOrderOfGrowth(f *state.Family) []*state.ClusterQueue {
	queues := slices.DeleteFunc(slices.Clone(f.Queues), func(q *state.ClusterQueue) bool { return len(q.Elastic) == 0 })
	if len(queues) < 2 {
		return queues
	}
	turns := make(map[*state.ClusterQueue]growthTurn, len(queues))
	for _, q := range queues {
		turns[q] = g.growthTurnOf(g.pass.engine.growths.ResizableOf(q))
	}
	slices.SortStableFunc(queues, func(a, b *state.ClusterQueue) int { return turns[a].compare(turns[b]) })
	return queues
}

// growthTurn orders the queues of a family for growth: by the highest priority of their workloads that could grow, and
// by whether all of these must rest.
type growthTurn struct {
	highest   int32
	coolsDown bool
}

// growthTurnOf returns that of a queue.
func (g *growthPass) growthTurnOf(t *state.Resizable) growthTurn {
	turn := growthTurn{math.MinInt32, true}
	for n, i := range t.Above(math.MinInt32).Indices {
		job := &t.Jobs[i]
		if n > 0 && job.Priority < turn.highest {
			break
		}
		turn.highest = job.Priority
		if !g.pass.engine.growths.Policy.GrowsAt(job, job.Max).After(g.pass.engine.growths.Now) {
			turn.coolsDown = false
			break
		}
	}
	return turn
}

// compare returns a negative number if the turn is before the other one.
func (g growthTurn) compare(other growthTurn) int {
	switch {
	case g.highest != other.highest:
		return cmp.Compare(other.highest, g.highest)
	case g.coolsDown == other.coolsDown:
		return 0
	case other.coolsDown:
		return -1
	default:
		return 1
	}
}

// ownGrowths is own quota that the queues of a family hold back while others grow: what their workloads are to grow
// into soon. Nothing of it would come back from a workload of another queue that grows into it first. Two queues of 5
// GPUs share a cohort:
//
//	own runs in a with 2 GPUs and may grow to 5 in 30 s, other runs in b with 5 GPUs and may grow now
//	3 GPUs are free: a holds them back, and other does not grow
//
// Where others have borrowed so much that there is not enough for all queues, the first in order of growth has it
// first: if queues held the same quota back from each other, none would ever grow.
type ownGrowths struct {
	pass   *pass
	queues []*state.ClusterQueue
	// HeldBack is what each queue holds back, nil until it is asked for.
	heldBack map[*state.ClusterQueue]quota.Vector
}

// HoldBack has all queues but the one whose turn it is hold their own growth back, if they do not yet. It reports
// whether they do so from now on.
func (o *ownGrowths) holdBack(turn *state.ClusterQueue) (news bool) {
	if o.heldBack != nil || len(o.queues) < 2 {
		return false
	}
	o.heldBack = make(map[*state.ClusterQueue]quota.Vector, len(o.queues))
	for _, q := range o.queues {
		if o.pass.growth.growsIn(q) {
			o.end(q, true)
			news = news || q != turn && len(o.heldBack[q]) > 0
		}
	}
	o.begin(turn)
	return news
}

// begin begins the turn of a queue: it may use what it holds back.
func (o *ownGrowths) begin(turn *state.ClusterQueue) {
	o.pass.engine.tree.Release(turn.Name, quota.Planned, o.heldBack[turn])
}

// end ends the turn of a queue: it holds back what it is to grow into after that.
func (o *ownGrowths) end(turn *state.ClusterQueue, changed bool) {
	if o.heldBack == nil {
		return
	}
	if changed {
		o.heldBack[turn] = o.pass.growth.ownGrowthOf(turn)
	}
	o.pass.engine.tree.Charge(turn.Name, quota.Planned, o.heldBack[turn])
}

// release releases what all queues hold back.
func (o *ownGrowths) release() {
	for _, q := range o.queues {
		o.begin(q)
	}
}

// ownGrowthOf returns what the queue's workloads are to grow into soon of its own quota, beside what it keeps.
func (g *growthPass) ownGrowthOf(q *state.ClusterQueue) quota.Vector {
	t := g.pass.engine.growths.ResizableOf(q)
	var indices []int
	for _, i := range t.Above(math.MinInt32).Indices {
		if t.Planned[i] == 0 {
			indices = append(indices, i)
		}
	}
	grown, _, _ := g.pass.engine.growths.GrownAs(q, t, indices, func(i quota.Index) int64 {
		return min(q.Node.Available(quota.Planned, i), quota.Sub(q.Node.Nominal(i), q.Node.Used(quota.Planned, i)))
	})
	sums := map[quota.Index]int64{}
	for n, more := range grown {
		for _, a := range t.Each[indices[n]] {
			sums[a.Index] = quota.Add(sums[a.Index], quota.Times(a.Value, more))
		}
	}
	return state.VectorOfSums(sums)
}

// growthsOf shares out free capacity, one replica at a time, among the workloads for which the time since their last
// resize is long enough and the gain worth the cost. What the queue keeps for a waiting workload is free for those of a
// higher priority: lower ones get nothing that these are about to use, so that otherwise nobody would.
func (g *growthPass) growthsOf(q *state.ClusterQueue) []growth.Growth {
	g.pass.engine.waiting.Stop(waiting.Grow, Key{Name: q.Name})
	if mine := q.HoldBackOf(); mine.Class != nil && mine.Class.ClassKey.Priority < math.MaxInt32 {
		g.pass.engine.holdBacks.Release(q)
		if out := g.growthsFrom(q, mine.Class.ClassKey.Priority+1); len(out) > 0 {
			return out // the others have their turn in the next pass
		}
		g.pass.engine.holdBacks.Charge(q)
	}
	return g.growthsFrom(q, math.MinInt32)
}

// growthsFrom is growthsOf for workloads of at least this priority. What one will grow into soon is not given to lower
// priorities meanwhile: they would have to give it back.
func (g *growthPass) growthsFrom(q *state.ClusterQueue, priority int32) []growth.Growth {
	t := g.pass.engine.growths.ResizableOf(q)
	var may, soon []int
	for i, w := range t.Members {
		if t.Jobs[i].Size == t.Jobs[i].Max || w.Held.HasSurplus() || len(w.Growing) > 0 ||
			w.Priority < priority || !w.MayGrow() {
			continue // it is at its maximum, or pods of it or for it have not terminated yet
		}
		to := int32(min(int64(t.Jobs[i].Max), int64(t.Jobs[i].Size)+state.ReplicasFree(q.Node, t.Each[i])))
		if to <= t.Jobs[i].Size {
			continue
		}
		switch g.whenGrows(q, t, i, to) {
		case atOnce:
			may = append(may, i)
		case shortly:
			soon = append(soon, i)
		}
	}
	return g.share(q, t, may, soon)
}

// growthTime is when a workload may grow.
type growthTime int

const (
	muchLater growthTime = iota
	// shortly: capacity is kept for it.
	shortly
	atOnce
)

// whenGrows returns when a resizable workload may grow to the size, and notes the time if it is not now.
func (g *growthPass) whenGrows(q *state.ClusterQueue, t *state.Resizable, i int, to int32) growthTime {
	at := g.pass.engine.growths.Policy.GrowsAt(&t.Jobs[i], to)
	if !at.After(g.pass.engine.growths.Now) {
		return atOnce
	}
	g.scheduleGrowth(q, at)
	if g.pass.engine.growths.ReserveFrom(&t.Jobs[i], to).After(g.pass.engine.growths.Now) {
		return muchLater
	}
	return shortly
}

// share shares out capacity among the workloads that may grow now and, before lower priorities, those that may soon,
// and returns the growth of the former. None gets quota for pods that have no nodes, since others may have nodes for
// theirs, nor, where it would grow by less than it was thought to, for growth that is not worth its cost.
func (g *growthPass) share(q *state.ClusterQueue, t *state.Resizable, may, soon []int) []growth.Growth {
	for len(may) > 0 {
		soon = onlyAbove(t, soon, may)
		jobs := g.pass.engine.growths.HeadroomOf(q, t, place.Now).Share(may, soon, q.Node.Free)
		var out []growth.Growth
		var stillMay, stillSoon []int
		for n, i := range slices.Concat(may, soon) {
			now, to := n < len(may), jobs[n].Size
			when := atOnce
			if to > t.Jobs[i].Size {
				when = g.whenGrows(q, t, i, to)
			}
			switch {
			case now && when == atOnce:
				stillMay = append(stillMay, i)
				if to > t.Jobs[i].Size {
					out = append(out, growth.Growth{Workload: t.Members[i], At: t.At[i], To: to})
				}
			case when != muchLater:
				stillSoon = append(stillSoon, i)
			}
		}
		if len(stillMay) == len(may) && len(stillSoon) == len(soon) {
			slices.SortStableFunc(out,
				func(a, b growth.Growth) int { return cmp.Compare(b.Workload.Priority, a.Workload.Priority) })
			return out
		}
		may, soon = stillMay, stillSoon
	}
	return nil
}

// onlyAbove returns those of the indices whose priority is above the lowest one of the others, of which there are some.
func onlyAbove(t *state.Resizable, indices, others []int) []int {
	priority := func(i int) int32 { return t.Jobs[i].Priority }
	lowest := priority(slices.MinFunc(others, func(a, b int) int { return cmp.Compare(priority(a), priority(b)) }))
	return slices.DeleteFunc(indices, func(i int) bool { return priority(i) <= lowest })
}
