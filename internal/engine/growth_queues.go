package engine

import (
	"cmp"
	"math"
	"slices"

	"github.com/musterhq/muster/internal/engine/quota"
	"github.com/musterhq/muster/internal/engine/state"
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
