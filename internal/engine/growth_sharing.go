package engine

import (
	"cmp"
	"math"
	"slices"

	"github.com/musterhq/muster/internal/engine/growth"
	"github.com/musterhq/muster/internal/engine/place"
	"github.com/musterhq/muster/internal/engine/state"
	"github.com/musterhq/muster/internal/engine/waiting"
)

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
