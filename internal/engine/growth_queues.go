package engine

import (
	"cmp"
	"math"
	"slices"

	"github.com/musterhq/muster/internal/engine/quota"
)

// Workloads of several queues that share quota grow beside each other: the highest priority first, and each queue into its
// own quota before others borrow it. A queue does not get back what a workload of another one has grown into, except for
// workloads that wait, where its policy allows that.

// inOrderOfGrowth returns the queues of the family with elastic workloads, those with the highest priority that could
// grow first; of equal ones, those where such a workload need not rest.
func (p *pass) inOrderOfGrowth(f *family) []*clusterQueue {
	queues := slices.DeleteFunc(slices.Clone(f.queues), func(q *clusterQueue) bool { return len(q.elastic) == 0 })
	if len(queues) < 2 {
		return queues
	}
	turns := make(map[*clusterQueue]growthTurn, len(queues))
	for _, q := range queues {
		turns[q] = p.growthTurnOf(p.engine.growths.resizableOf(q))
	}
	slices.SortStableFunc(queues, func(a, b *clusterQueue) int { return turns[a].compare(turns[b]) })
	return queues
}

// growthTurn orders the queues of a family for growth: by the highest priority of their workloads that could grow, and
// by whether all of these must rest.
type growthTurn struct {
	highest int32
	rests   bool
}

// growthTurnOf returns that of a queue.
func (p *pass) growthTurnOf(t *resizable) growthTurn {
	turn := growthTurn{math.MinInt32, true}
	for n, i := range t.above(math.MinInt32).indices {
		job := &t.jobs[i]
		if n > 0 && job.Priority < turn.highest {
			break
		}
		turn.highest = job.Priority
		if !p.engine.growths.policy.GrowsAt(job, job.Max).After(p.engine.growths.now) {
			turn.rests = false
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
	case g.rests == other.rests:
		return 0
	case other.rests:
		return -1
	default:
		return 1
	}
}

// ownGrowths is what the queues of a family, in order of growth, keep of their own quota while others grow: what their
// workloads are to grow into soon. None of it would come back from a workload of another queue that grows into it first.
// Where others have borrowed so much that there is not enough for all queues, the first in order has it first: if queues
// kept the same quota for each other, none would ever grow.
type ownGrowths struct {
	pass   *pass
	queues []*clusterQueue
	// kept is what each queue keeps, nil until that is asked for.
	kept map[*clusterQueue]quota.Vector
}

// keep keeps it, if it does not yet, for all queues but the one whose turn it is. It reports whether that is news.
func (o *ownGrowths) keep(turn *clusterQueue) (news bool) {
	if o.kept != nil || len(o.queues) < 2 {
		return false
	}
	o.kept = make(map[*clusterQueue]quota.Vector, len(o.queues))
	for _, q := range o.queues {
		if o.pass.growsIn(q) {
			o.end(q, true)
			news = news || q != turn && len(o.kept[q]) > 0
		}
	}
	o.begin(turn)
	return news
}

// begin begins the turn of a queue: it may use what it keeps.
func (o *ownGrowths) begin(turn *clusterQueue) {
	o.pass.engine.tree.Release(turn.Name, quota.Planned, o.kept[turn])
}

// end ends the turn of a queue: it keeps what it is to grow into after that.
func (o *ownGrowths) end(turn *clusterQueue, changed bool) {
	if o.kept == nil {
		return
	}
	if changed {
		o.kept[turn] = o.pass.ownGrowthOf(turn)
	}
	o.pass.engine.tree.Charge(turn.Name, quota.Planned, o.kept[turn])
}

// release releases what all of them keep.
func (o *ownGrowths) release() {
	for _, q := range o.queues {
		o.begin(q)
	}
}

// ownGrowthOf returns what the queue's workloads are to grow into soon of its own quota, beside what it keeps.
func (p *pass) ownGrowthOf(q *clusterQueue) quota.Vector {
	t := p.engine.growths.resizableOf(q)
	var indices []int
	for _, i := range t.above(math.MinInt32).indices {
		if t.planned[i] == 0 {
			indices = append(indices, i)
		}
	}
	grown, _, _ := p.engine.growths.grownAs(q, t, indices, func(i quota.Index) int64 {
		return min(q.node.Available(quota.Planned, i), quota.Sub(q.node.Nominal(i), q.node.Used(quota.Planned, i)))
	})
	sums := map[quota.Index]int64{}
	for n, more := range grown {
		for _, a := range t.each[indices[n]] {
			sums[a.Index] = quota.Add(sums[a.Index], quota.Times(a.Value, more))
		}
	}
	return vectorOfSums(sums)
}
