package engine

import (
	"cmp"
	"slices"

	"github.com/musterhq/muster/internal/engine/nodes"
	"github.com/musterhq/muster/internal/engine/order"
	"github.com/musterhq/muster/internal/engine/quota"
	"github.com/musterhq/muster/internal/engine/reason"
	"github.com/musterhq/muster/internal/engine/state"
)

// admitNominated admits the workloads whose nominated capacity is available. It routes the others again if nothing is
// left that they could wait for. A workload that has to wait for ready pods keeps its nomination: others were evicted
// for it.
func (p *pass) admitNominated(f *state.Family) {
	ranks := slices.Clone(f.Nominated.All())
	slices.SortFunc(ranks, order.Compare)
	for _, r := range ranks {
		w := p.engine.workloads[r.Key]
		usage, onNodes := w.Nomination.Usage, w.Nomination.Given.OnNodes()
		if why := p.engine.tallies.mustWait(w.ClusterQueue); why.Code != reason.None &&
			state.Fits(w.ClusterQueue.Node, usage) {
			p.engine.reports.set(w, why)
			continue
		}
		switch p.placesFor(w) {
		case state.Admissible:
			if state.Fits(w.ClusterQueue.Node, usage) {
				given := w.Nomination.Given
				w.WithdrawNomination()
				f.Version++
				p.admit(w, given)
				continue
			}
		case state.Hopeless:
			p.engine.route(w)
			continue
		}
		if f.Leaving() == 0 && (!onNodes || p.engine.nodes.Departing == 0) {
			p.engine.route(w)
			continue
		}
		p.engine.reports.set(w, w.Nomination.Why) // it may have reported that it waits for ready pods
	}
}

// breakOvercommitted takes back nominations that exceed the quota because a workload was not evicted after all: first
// those without evictions of their own, and of these the last in order.
func (p *pass) breakOvercommitted(f *state.Family) {
	ranks := slices.Clone(f.Nominated.All())
	cost := func(r order.Rank) int { return min(1, p.engine.workloads[r.Key].Nomination.Why.Preempted) }
	slices.SortFunc(ranks, func(a, b order.Rank) int { return cmp.Or(cmp.Compare(cost(a), cost(b)), order.Compare(b, a)) })
	for _, r := range ranks {
		w := p.engine.workloads[r.Key]
		if slices.ContainsFunc(w.Nomination.Usage,
			func(a quota.Amount) bool { return w.ClusterQueue.Node.Available(quota.Planned, a.Index) < 0 }) {
			p.engine.route(w)
		}
	}
}

// canAdmitNominated reports whether admitNominated has something to do. A nomination may depend only on workloads that
// had no more than a nomination themselves.
func (e *Engine) canAdmitNominated(f *state.Family) bool {
	if f.Nominated.Len() == 0 {
		return false
	}
	left := f.Leaving() > 0
	return slices.ContainsFunc(f.Nominated.All(), func(r order.Rank) bool {
		w := e.workloads[r.Key]
		there := state.Fits(w.ClusterQueue.Node, w.Nomination.Usage)
		switch {
		case there && e.tallies.mustWait(w.ClusterQueue).Code != reason.None:
			return false
		case !w.Nomination.Given.OnNodes():
			return !left || there
		}
		return !left && e.nodes.Departing == 0 || w.Nomination.CheckedAt != e.nodes.PlacesVersion && there
	})
}

// placesFor determines whether the nominated places, or equivalent ones, are available now (admissible), will be
// (nominable), or not (hopeless). It replaces the nominated places by those that it found.
func (p *pass) placesFor(w *state.Workload) state.Verdict {
	nominated := w.Nomination
	if !nominated.Given.OnNodes() {
		return state.Admissible
	}
	if nominated.CheckedAt == p.engine.nodes.PlacesVersion {
		return state.Nominable
	}
	out, found := p.engine.nodes.FindNominated(w)
	if out == state.Hopeless {
		return state.Hopeless
	}
	given := *nominated.Given
	given.PodSets = nodes.WithPlaces(given.PodSets, found)
	nominated.Given = &given
	p.engine.updateCharges(w)
	if out == state.Nominable {
		nominated.CheckedAt = p.engine.nodes.PlacesVersion
	}
	return out
}
