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
		turns[q] = p.growthTurnOf(p.resizableOf(q))
	}
	slices.SortStableFunc(queues, func(a, b *clusterQueue) int { return turns[a].compare(turns[b]) })
	return queues
}

// growthTurn orders the queues of a family for growth.
type growthTurn struct {
	highest int32
	rests   bool
}

func (p *pass) growthTurnOf(t *resizable) growthTurn {
	turn := growthTurn{math.MinInt32, true}
	for n, i := range t.above(math.MinInt32).indices {
		job := &t.jobs[i]
		if n > 0 && job.Priority < turn.highest {
			break
		}
		turn.highest = job.Priority
		if !p.options.Elastic.GrowsAt(job, job.Max).After(p.now) {
			turn.rests = false
			break
		}
	}
	return turn
}

func (t growthTurn) compare(other growthTurn) int {
	switch {
	case t.highest != other.highest:
		return cmp.Compare(other.highest, t.highest)
	case t.rests == other.rests:
		return 0
	case other.rests:
		return -1
	default:
		return 1
	}
}

// ownGrowths has, by queue, what its workloads are to grow into soon of its own quota, for those where that is known.
type ownGrowths map[*clusterQueue]quota.Vector

// keepOwnGrowths keeps for the other queues, given in order of growth, what their workloads are to grow into soon of their own
// quota: none of it would come back from a workload of another queue that grows into it first. Where others have borrowed
// so much that there is not enough for all queues, this one included, the first in order has it first: if they kept the
// same quota for each other, none would ever grow. It reports whether it keeps anything.
func (p *pass) keepOwnGrowths(q *clusterQueue, queues []*clusterQueue, own ownGrowths) (any bool) {
	for _, other := range queues {
		p.tree.Charge(other.Name, quota.Planned, own[other])
	}
	for _, other := range queues {
		if _, known := own[other]; !known && p.growsIn(other) {
			own[other] = p.ownGrowthOf(other)
			p.tree.Charge(other.Name, quota.Planned, own[other])
		}
	}
	p.tree.Release(q.Name, quota.Planned, own[q])
	for _, other := range queues {
		if more := own[other]; other != q && len(more) > 0 {
			other.kept, any = quota.VectorOf(slices.Concat(other.kept, more)...), true
		}
	}
	return any
}

// ownGrowthOf returns what the queue's workloads are to grow into soon of its own quota, beside what it keeps.
func (p *pass) ownGrowthOf(q *clusterQueue) quota.Vector {
	t := p.resizableOf(q)
	var indices []int
	for _, i := range t.above(math.MinInt32).indices {
		if t.planned[i] == 0 {
			indices = append(indices, i)
		}
	}
	grown, _, _ := p.grownAs(q, t, indices, func(i quota.Index) int64 {
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
