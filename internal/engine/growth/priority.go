package growth

import (
	"slices"

	"github.com/musterhq/muster/internal/engine/flavor"
	"github.com/musterhq/muster/internal/engine/model"
	"github.com/musterhq/muster/internal/engine/place"
	"github.com/musterhq/muster/internal/engine/quota"
	"github.com/musterhq/muster/internal/engine/state"
)

// A priority has all that it can use before a lower one has anything. If a running workload is to grow soon, nothing
// of lower priority is admitted into the capacity that it will use: it would only be stopped again.

// BlocksGrowth returns a workload of higher priority in the queue that could grow less if the workload were given the
// choice, nil if there is none.
func (g *Growths) BlocksGrowth(w *state.Workload, q *state.ClusterQueue, choice flavor.Choice) *state.Workload {
	if len(q.Elastic) == 0 {
		return nil
	}
	t := g.ResizableOf(q)
	above := t.Above(w.Priority)
	switch {
	case len(above.Indices) == 0:
		return nil
	case g.competes(q, choice.Usage, above.All):
		return g.FirstToGrow(q, t, above.Indices)
	}
	given := &model.Admission{ClusterQueue: q.Name, PodSets: choice.Assignments}
	if !given.OnNodes() {
		return nil
	}
	return g.blocksGrowthOnNodes(w, q, t, above.Indices, given)
}

// competes reports whether there is any amount that both usage and all contain, of which less would be left in
// the planned ledger beside usage than all needs.
func (g *Growths) competes(q *state.ClusterQueue, usage, all quota.Vector) bool {
	return slices.ContainsFunc(usage, func(a quota.Amount) bool {
		wanted := all.Of(a.Index)
		return wanted > 0 && quota.Sub(q.Node.Available(quota.Planned, a.Index), a.Value) < wanted
	})
}

// maxGrowthChecks bounds how many growing workloads are checked for capacity on nodes.
const maxGrowthChecks = 8

// FirstToGrow returns the first of them that has capacity to grow soon, nil if there is none.
func (g *Growths) FirstToGrow(q *state.ClusterQueue, t *state.Resizable, indices []int) *state.Workload {
	left := maxGrowthChecks
	for _, i := range indices {
		if most := g.growsSoon(q, t, i); most > 0 {
			if g.PodsOn(place.Planned, t, i, most) > 0 {
				return t.Members[i]
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
func (g *Growths) growsSoon(q *state.ClusterQueue, t *state.Resizable, i int) int32 {
	job, planned := &t.Jobs[i], t.Planned[i]
	most := int32(min(int64(job.Max-job.Size), int64(planned)+state.ReplicasPlanned(q.Node, t.Each[i])))
	if most > planned && g.ReserveFrom(job, job.Size+most).After(g.Now) {
		return planned
	}
	return most
}

// blocksGrowthOnNodes returns the first of them that would have less capacity on nodes, beside those before it.
func (g *Growths) blocksGrowthOnNodes(w *state.Workload, q *state.ClusterQueue, t *state.Resizable, indices []int,
	given *model.Admission) (grower *state.Workload) {
	var growing []int
	var wanted []int32
	for _, i := range indices {
		if most := g.growsSoon(q, t, i); most > 0 && len(growing) < maxGrowthChecks {
			growing, wanted = append(growing, i), append(wanted, most)
		}
	}
	nodes := g.HeadroomOf(q, t, place.Planned)
	grown := func() (pods []int32) {
		g.nodes.Places.Try(func() {
			for n, i := range growing {
				most := g.PodsOn(place.Planned, t, i, wanted[n])
				pods = append(pods, most)
				if most > 0 && n < len(growing)-1 {
					nodes.enlarge(i, most)
				}
			}
		})
		return pods
	}
	before := grown()
	g.nodes.Places.Try(func() {
		g.nodes.HoldAs(w, state.Placed{By: given, Nominated: true})
		for n, most := range grown() {
			if grower == nil && most < before[n] {
				grower = t.Members[growing[n]]
			}
		}
	})
	return grower
}
