package engine

import (
	"math"
	"slices"

	"github.com/musterhq/muster/internal/engine/flavor"
	"github.com/musterhq/muster/internal/engine/quota"
	"github.com/musterhq/muster/internal/engine/reason"
)

// A priority has all that it can use before a lower one has anything. Where one that runs is
// to grow, as soon as it has rested and that is worth the cost, nobody of lower priority
// begins in that room: he would only be stopped for it.

// outgrown reports whether those of the queue who are of higher priority could grow less if
// the workload were given that.
func (e *Engine) outgrown(w *workload, q *clusterQueue, choice flavor.Choice) bool {
	if len(q.elastic) == 0 {
		return false
	}
	t := e.resizableOf(q)
	above := t.above(w.Priority)
	switch {
	case len(above.indices) == 0:
		return false
	case e.shareOfQuota(q, choice.Usage, above.all):
		return e.anyGrows(q, t, above.indices)
	}
	given := &Admission{ClusterQueue: q.Name, PodSets: choice.Assignments}
	return given.onNodes() && e.outgrownOnNodes(w, q, t, above.indices, given)
}

// shareOfQuota reports whether less of what is planned to be free is left beside the amounts
// than all could take, of anything that both take.
func (e *Engine) shareOfQuota(q *clusterQueue, usage, all quota.Vector) bool {
	return slices.ContainsFunc(usage, func(a quota.Amount) bool {
		wanted := all.Of(a.Index)
		return wanted > 0 && quota.Sub(q.node.Available(quota.Planned, a.Index), a.Value) < wanted
	})
}

// asked bounds for how many of those who may be larger it is asked whether nodes have room.
const asked = 8

// anyGrows reports whether there is room for any of them to grow soon.
func (e *Engine) anyGrows(q *clusterQueue, t *resizable, indices []int) bool {
	left := asked
	for _, i := range indices {
		if most := e.growsSoon(q, t, i); most > 0 {
			if e.podsOnNodes(t, i, most) > 0 {
				return true
			}
			if left--; left == 0 {
				return false
			}
		}
	}
	return false
}

// growsSoon is by how many pods one of the resizable is to grow, as far as quota goes.
func (e *Engine) growsSoon(q *clusterQueue, t *resizable, i int) int32 {
	job := &t.jobs[i]
	most := int32(min(int64(job.Max-job.Size), plannedRoom(q.node, t.each[i])))
	if most > 0 && e.worthAt(job, job.Size+most).After(e.now) {
		return 0
	}
	return most
}

// outgrownOnNodes reports whether one of them would have less room on nodes.
func (e *Engine) outgrownOnNodes(w *workload, q *clusterQueue, t *resizable, indices []int, given *Admission) (is bool) {
	before := map[int]int32{}
	for _, i := range indices {
		if most := e.growsSoon(q, t, i); most > 0 && len(before) < asked {
			before[i] = e.podsOnNodes(t, i, most)
		}
	}
	e.places.Try(func() {
		e.places.Hold(w.Key, e.holding(w, placed{by: given, promised: true}))
		for i, most := range before {
			is = is || most > 0 && e.podsOnNodes(t, i, most) < most
		}
	})
	return is
}

// awaitsGrowth is the outcome of a choice that is kept for others of the queue.
func (e *Engine) awaitsGrowth(choice flavor.Choice) outcome {
	out := outcome{choice: choice, outgrown: true}
	out.choice.Mode = flavor.Blocked
	out.choice.Short = choice.Usage.Indices()
	out.choice.Why = reason.Reason{Code: reason.WaitingForQuota,
		Detail: "what is free is kept for workloads of higher priority in the same ClusterQueue, which run and are to grow"}
	for i := range choice.Assignments {
		if a := &choice.Assignments[i]; len(a.Places) > 0 {
			out.wants = append(out.wants, e.placedBy(a))
		}
	}
	return out
}

// wakeOutgrown has those looked at again for whom others of the queue, of whom one is not
// what it was, leave more room perhaps.
func (q *clusterQueue) wakeOutgrown() {
	if q.outgrown == 0 {
		return
	}
	for _, c := range q.classes {
		if c.outgrown {
			q.unblock(c)
		}
	}
}

// letGoOutgrown has the queue keep nothing for one who waits for others of it to grow, and
// returns the priority from which on they are to.
func (e *Engine) letGoOutgrown(q *clusterQueue) (from int32) {
	mine := q.claimOf()
	if mine.class == nil || !mine.class.outgrown || mine.class.priority == math.MaxInt32 {
		return math.MinInt32
	}
	e.letGo(q)
	return mine.class.priority + 1
}
