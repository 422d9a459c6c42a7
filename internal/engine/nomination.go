package engine

import (
	"cmp"
	"slices"

	"github.com/musterhq/muster/internal/engine/order"
	"github.com/musterhq/muster/internal/engine/quota"
	"github.com/musterhq/muster/internal/engine/reason"
)

// admitNominated admits the workloads whose promised capacity is available. It routes the others again if nothing is
// left that they could wait for. A workload that has to wait for ready pods keeps its promise: others were evicted
// for it.
func (p *pass) admitNominated(f *family) {
	ranks := slices.Clone(f.nominated.All())
	slices.SortFunc(ranks, order.Compare)
	for _, r := range ranks {
		w := p.engine.workloads[r.Key]
		usage, onNodes := w.nomination.usage, w.nomination.given.OnNodes()
		if why := p.engine.mustWait(w.queue); why.Code != reason.None && fits(w.queue.node, usage) {
			p.engine.reports.set(w, why)
			continue
		}
		switch p.placesFor(w) {
		case admissible:
			if fits(w.queue.node, usage) {
				given := w.nomination.given
				p.engine.withdrawNomination(w)
				f.version++
				p.admit(w, given)
				continue
			}
		case hopeless:
			p.engine.route(w)
			continue
		}
		if f.leaving() == 0 && (!onNodes || p.engine.nodes.departing == 0) {
			p.engine.route(w)
			continue
		}
		p.engine.reports.set(w, w.nomination.why) // it may have reported that it waits for ready pods
	}
}

// breakOvercommitted takes back promises that exceed the quota because a workload was not evicted after all: first
// those without evictions of their own, and of these the last in order.
func (p *pass) breakOvercommitted(f *family) {
	ranks := slices.Clone(f.nominated.All())
	cost := func(r order.Rank) int { return min(1, p.engine.workloads[r.Key].nomination.why.Preempted) }
	slices.SortFunc(ranks, func(a, b order.Rank) int { return cmp.Or(cmp.Compare(cost(a), cost(b)), order.Compare(b, a)) })
	for _, r := range ranks {
		w := p.engine.workloads[r.Key]
		if slices.ContainsFunc(w.nomination.usage, func(a quota.Amount) bool { return w.queue.node.Available(quota.Planned, a.Index) < 0 }) {
			p.engine.route(w)
		}
	}
}

// canAdmitNominated reports whether admitNominated has something to do. A promise may depend only on workloads that had no
// more than a promise themselves.
func (e *Engine) canAdmitNominated(f *family) bool {
	if f.nominated.Len() == 0 {
		return false
	}
	left := f.leaving() > 0
	return slices.ContainsFunc(f.nominated.All(), func(r order.Rank) bool {
		w := e.workloads[r.Key]
		there := fits(w.queue.node, w.nomination.usage)
		switch {
		case there && e.mustWait(w.queue).Code != reason.None:
			return false
		case !w.nomination.given.OnNodes():
			return !left || there
		}
		return !left && e.nodes.departing == 0 || w.nomination.checkedAt != e.nodes.placesVersion && there
	})
}

// placesFor determines whether the promised places, or equivalent ones, are available now (admissible), will be
// (nominable), or not (hopeless). It replaces the promised places by those that it found.
func (p *pass) placesFor(w *workload) verdict {
	promised := w.nomination
	if !promised.given.OnNodes() {
		return admissible
	}
	if promised.checkedAt == p.engine.nodes.placesVersion {
		return nominable
	}
	out, found := p.engine.nodes.findNominated(w)
	if out == hopeless {
		return hopeless
	}
	given := *promised.given
	given.PodSets = withPlaces(given.PodSets, found)
	promised.given = &given
	p.engine.updateCharges(w)
	if out == nominable {
		promised.checkedAt = p.engine.nodes.placesVersion
	}
	return out
}
