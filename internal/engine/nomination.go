package engine

import (
	"cmp"
	"slices"

	"github.com/musterhq/muster/internal/engine/order"
	"github.com/musterhq/muster/internal/engine/place"
	"github.com/musterhq/muster/internal/engine/quota"
	"github.com/musterhq/muster/internal/engine/reason"
)

// promise is capacity that a workload will be given once evicted workloads have released it. It is charged to the
// planned ledger, so that it is given to no other workload and never promised twice.
type nomination struct {
	given *Admission
	usage quota.Vector
	// why is the reason to wait, if it is for evicted workloads.
	why reason.Reason
	// checkedAt is the placesVersion for which there was no capacity on nodes yet.
	checkedAt int
}

// nominate makes the workload wait for capacity that will be released.
func (e *Engine) nominate(w *workload, given *Admission, usage quota.Vector, why reason.Reason) {
	w.nomination = &nomination{given: given, usage: usage, why: why, checkedAt: -1}
	e.updateCharges(w)
	e.reports.set(w, why)
	q := w.queue
	q.family.nominated.Push(w.rank())
	q.nominated.Push(w.rank())
	if q.Strategy == Strict {
		e.reports.reportReady(q, whyBehind(q))
	}
}

// withdrawNomination takes the promise back. The caller must update the charges of the workload.
func (e *Engine) withdrawNomination(w *workload) {
	w.nomination = nil
	w.queue.nominated.Remove(w.Key)
	if f := w.queue.family; f != nil {
		f.nominated.Remove(w.Key)
		f.enqueue()
	}
}

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

// findNominated determines whether the promised places, or equivalent ones, are available now or will be, and returns them.
func (n *nodes) findNominated(w *workload) (out verdict, found []place.Assignment) {
	given := w.nomination.given.PodSets
	asks := n.asksOf(w.shape.podSets, given, w.avoid)
	n.places.Try(func() {
		n.places.Hold(w.Key, n.holding(w, n.leftoverPods(w)))
		out, found = n.placesOn(asks, placesOf(asks, given))
	})
	return out, found
}

// placesOn determines whether places are available now or will be, preferably those given.
func (n *nodes) placesOn(asks []place.Ask, at []place.Assignment) (verdict, []place.Assignment) {
	near := n.stillClose(asks, at)
	if near && n.finder.FitsAt(asks, at, place.Now) {
		return admissible, at
	}
	if found, ok := n.finder.TryFind(asks, place.Now); ok {
		return admissible, found
	}
	if near && n.finder.FitsAt(asks, at, place.Planned) {
		return nominable, at
	}
	if found, ok := n.finder.TryFind(asks, place.Planned); ok {
		return nominable, found
	}
	return hopeless, nil
}

// stillClose reports whether the places are certain to be as close to each other as the asks require: node labels may
// have changed. For groups, slices and exclusive domains only a new search can tell.
func (n *nodes) stillClose(asks []place.Ask, at []place.Assignment) bool {
	for i := range min(len(asks), len(at)) {
		ask := &asks[i]
		switch {
		case ask.Group != "", len(ask.Slices) > 0, ask.ExclusiveKey != "":
			return false
		case ask.Mandatory && !n.inOneDomain(ask, at[i].Nodes):
			return false
		}
	}
	return true
}

// inOneDomain reports whether the nodes are in one domain of the ask's level.
func (n *nodes) inOneDomain(ask *place.Ask, nodes []place.NodeCount) bool {
	levels := n.topologies[n.flavors[ask.Flavor].Topology]
	for _, level := range levels[:slices.Index(levels, ask.Level)+1] {
		for _, at := range nodes {
			domain, _ := n.places.LabelOf(nodes[0].Node, level)
			if is, known := n.places.LabelOf(at.Node, level); !known || is != domain {
				return false
			}
		}
	}
	return true
}

// fits reports whether the amounts are free now.
func fits(n *quota.Node, v quota.Vector) bool {
	return !slices.ContainsFunc(v, func(a quota.Amount) bool { return n.Available(quota.Held, a.Index) < a.Value })
}

// nominees returns the workloads of the queue with a promise, sorted by key.
func (e *Engine) nominees(q *clusterQueue) []*workload {
	var out []*workload
	for _, r := range q.nominated.All() { // not all are holders: a promise may be of places alone
		out = append(out, e.workloads[r.Key])
	}
	slices.SortFunc(out, func(a, b *workload) int { return order.CompareKeys(a.Key, b.Key) })
	return out
}
