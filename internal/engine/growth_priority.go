package engine

import (
	"slices"

	"github.com/musterhq/muster/internal/engine/flavor"
	"github.com/musterhq/muster/internal/engine/place"
	"github.com/musterhq/muster/internal/engine/quota"
	"github.com/musterhq/muster/internal/engine/reason"
	"github.com/musterhq/muster/internal/engine/waiting"
)

// A priority has all that it can use before a lower one has anything. If a running workload is to grow soon, nothing
// of lower priority is admitted into the capacity that it will use: it would only be stopped again.

// blocksGrowth returns a workload of higher priority in the queue that could grow less if the workload were given the
// choice, nil if there is none.
func (g *growths) blocksGrowth(w *workload, q *clusterQueue, choice flavor.Choice) *workload {
	if len(q.elastic) == 0 {
		return nil
	}
	t := g.resizableOf(q)
	above := t.above(w.Priority)
	switch {
	case len(above.indices) == 0:
		return nil
	case g.competes(q, choice.Usage, above.all):
		return g.firstToGrow(q, t, above.indices)
	}
	given := &Admission{ClusterQueue: q.Name, PodSets: choice.Assignments}
	if !given.OnNodes() {
		return nil
	}
	return g.blocksGrowthOnNodes(w, q, t, above.indices, given)
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

// competes reports whether there is any amount that both usage and all contain, of which less would be left in
// the planned ledger beside usage than all needs.
func (g *growths) competes(q *clusterQueue, usage, all quota.Vector) bool {
	return slices.ContainsFunc(usage, func(a quota.Amount) bool {
		wanted := all.Of(a.Index)
		return wanted > 0 && quota.Sub(q.node.Available(quota.Planned, a.Index), a.Value) < wanted
	})
}

// maxGrowthChecks bounds how many growing workloads are checked for capacity on nodes.
const maxGrowthChecks = 8

// firstToGrow returns the first of them that has capacity to grow soon, nil if there is none.
func (g *growths) firstToGrow(q *clusterQueue, t *resizable, indices []int) *workload {
	left := maxGrowthChecks
	for _, i := range indices {
		if most := g.growsSoon(q, t, i); most > 0 {
			if g.podsOnNodes(t, i, most) > 0 {
				return t.members[i]
			}
			if left--; left == 0 {
				return nil
			}
		}
	}
	return nil
}

// growsSoon returns by how many pods a resizable workload is to grow soon, by quota alone. What is planned for it comes
// as soon as others have left.
func (g *growths) growsSoon(q *clusterQueue, t *resizable, i int) int32 {
	job, planned := &t.jobs[i], t.planned[i]
	most := int32(min(int64(job.Max-job.Size), int64(planned)+replicasPlanned(q.node, t.each[i])))
	if most > planned && g.reserveFrom(job, job.Size+most).After(g.now) {
		return planned
	}
	return most
}

// blocksGrowthOnNodes returns the first of them that would have less capacity on nodes, beside those before it.
func (g *growths) blocksGrowthOnNodes(w *workload, q *clusterQueue, t *resizable, indices []int, given *Admission) (grower *workload) {
	var growing []int
	var wanted []int32
	for _, i := range indices {
		if most := g.growsSoon(q, t, i); most > 0 && len(growing) < maxGrowthChecks {
			growing, wanted = append(growing, i), append(wanted, most)
		}
	}
	nodes := g.headroomOf(q, t, place.Planned)
	grown := func() (pods []int32) {
		g.nodes.places.Try(func() {
			for n, i := range growing {
				most := g.podsOnNodes(t, i, wanted[n])
				pods = append(pods, most)
				if most > 0 && n < len(growing)-1 {
					nodes.enlarge(i, most)
				}
			}
		})
		return pods
	}
	before := grown()
	g.nodes.places.Try(func() {
		g.nodes.places.Hold(w.Key, g.nodes.holding(w, placed{by: given, nominated: true}))
		for n, most := range grown() {
			if grower == nil && most < before[n] {
				grower = t.members[growing[n]]
			}
		}
	})
	return grower
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

// reevaluateByGrowth makes the classes ready that wait for a workload which is not to grow soon any more, as workloads of
// other queues, or other pods, have taken the capacity. It is called at the end of a pass, and does nothing in a state in
// which it did so before. It reports whether that left a class to evaluate.
func (p *pass) reevaluateByGrowth(f *family) (left bool) {
	now := p.engine.stateOf(f)
	if !slices.ContainsFunc(f.queues, func(q *clusterQueue) bool { return len(q.waits.ByGrowth(now)) > 0 }) {
		return false
	}
	p.engine.holdBacks.chargeAll(f)
	var stopped []*waiting.Class
	for _, q := range f.queues {
		if waits := q.waits.ByGrowth(now); len(waits) > 0 {
			q.waits.GrowersChecked(now)
			p.engine.holdBacks.release(q) // as when its classes are evaluated
			stopped = append(stopped, p.withoutGrower(q, waits)...)
			p.engine.holdBacks.charge(q)
		}
	}
	p.engine.holdBacks.releaseAll(f)
	for _, c := range stopped {
		c.Reevaluate()
	}
	return len(stopped) > 0
}

// withoutGrower returns those of the classes that wait for a workload which is not to grow soon any more.
func (p *pass) withoutGrower(q *clusterQueue, waits []*waiting.Class) (out []*waiting.Class) {
	t, grows := p.engine.growths.resizableOf(q), map[*workload]bool{}
	for _, c := range waits {
		grower, some := c.Grower().(*workload)
		if !some {
			continue
		}
		if _, known := grows[grower]; !known {
			i, listed := t.find(grower.Key)
			grows[grower] = listed && t.members[i] == grower && p.engine.growths.firstToGrow(q, t, []int{i}) != nil
		}
		if !grows[grower] {
			out = append(out, c)
		}
	}
	return out
}
