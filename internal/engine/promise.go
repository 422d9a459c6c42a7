package engine

import (
	"cmp"
	"slices"

	"github.com/musterhq/muster/internal/engine/order"
	"github.com/musterhq/muster/internal/engine/place"
	"github.com/musterhq/muster/internal/engine/quota"
	"github.com/musterhq/muster/internal/engine/reason"
)

// promise is quota that a workload will be given once those have gone who were told
// to. It is charged to what is planned, so that nobody else is given it, and the
// same room is never promised twice.
type promise struct {
	given *Admission
	usage quota.Vector
	// why it waits, while it is for those who were told to go.
	why reason.Reason
	// askedAt is the news of places as of which there was no room on the nodes.
	askedAt int
}

// promiseTo lets the workload wait for what will be given back.
func (e *Engine) promiseTo(w *workload, given *Admission, usage quota.Vector, why reason.Reason) {
	w.promise = &promise{given: given, usage: usage, why: why, askedAt: -1}
	e.settle(w)
	e.say(w, why)
	q := w.queue
	q.family.promised.Push(w.rank())
	q.promised.Push(w.rank())
	if q.Strategy == Strict {
		e.tellReady(q, behind(q))
	}
}

// breakPromise takes it back. The caller finds the workload another place, and
// settles.
func (e *Engine) breakPromise(w *workload) {
	w.promise = nil
	w.queue.promised.Remove(w.Key)
	if f := w.queue.family; f != nil {
		f.promised.Remove(w.Key)
		f.put()
	}
}

// keepPromises gives those what they were promised for whom there is room now, and
// lets the others look for something else once there is nobody left to wait for. Who has to
// wait for ready pods keeps what he was promised: others went for it.
func (p *pass) keepPromises(f *family) {
	ranks := slices.Clone(f.promised.All())
	slices.SortFunc(ranks, order.Compare)
	for _, r := range ranks {
		w := p.workloads[r.Key]
		usage, onNodes := w.promise.usage, w.promise.given.onNodes()
		if why := p.mustWait(w.queue); why.Code != reason.None && fits(w.queue.node, usage) {
			p.say(w, why)
			continue
		}
		switch p.placesFor(w) {
		case admissible:
			if fits(w.queue.node, usage) {
				given := w.promise.given
				p.breakPromise(w)
				f.version++
				p.admit(w, given)
				continue
			}
		case hopeless:
			p.route(w)
			continue
		}
		if f.leaving() == 0 && (!onNodes || p.departing == 0) {
			p.route(w)
			continue
		}
		p.say(w, w.promise.why) // it may have been told of ready pods before
	}
}

// breakUncovered takes back what was promised and will not be there, since somebody stays who was to go: what nobody had to go
// for first, and of the last in order.
func (p *pass) breakUncovered(f *family) {
	ranks := slices.Clone(f.promised.All())
	cost := func(r order.Rank) int { return min(1, p.workloads[r.Key].promise.why.Preempted) }
	slices.SortFunc(ranks, func(a, b order.Rank) int { return cmp.Or(cmp.Compare(cost(a), cost(b)), order.Compare(b, a)) })
	for _, r := range ranks {
		w := p.workloads[r.Key]
		if slices.ContainsFunc(w.promise.usage, func(a quota.Amount) bool { return w.queue.node.Available(quota.Planned, a.Index) < 0 }) {
			p.route(w)
		}
	}
}

// canKeepPromise reports whether keepPromises has something to do: a promise may need
// nobody to go but those who were only promised something themselves.
func (e *Engine) canKeepPromise(f *family) bool {
	if f.promised.Len() == 0 {
		return false
	}
	left := f.leaving() > 0
	return slices.ContainsFunc(f.promised.All(), func(r order.Rank) bool {
		w := e.workloads[r.Key]
		there := fits(w.queue.node, w.promise.usage)
		switch {
		case there && e.mustWait(w.queue).Code != reason.None:
			return false
		case !w.promise.given.onNodes():
			return !left || there
		}
		return !left && e.departing == 0 || w.promise.askedAt != e.placesNews && there
	})
}

// placesFor finds out whether the places that the workload was promised, or others as
// good, can be had now (admissible), will be there (promisable), or not (hopeless). Those
// found are promised in the stead of the old ones.
func (p *pass) placesFor(w *workload) verdict {
	promised := w.promise
	if !promised.given.onNodes() {
		return admissible
	}
	if promised.askedAt == p.placesNews {
		return promisable
	}
	asks := p.asksOf(w.shape.podSets, promised.given.PodSets, w.avoid.nodes)
	found := placesOf(asks, promised.given.PodSets)
	out := hopeless
	p.places.Try(func() {
		p.places.Hold(w.Key, p.holding(w, p.leftBy(w)))
		out, found = p.placesOn(asks, found)
	})
	if out == hopeless {
		return hopeless
	}
	given := *promised.given
	given.PodSets = withPlaces(given.PodSets, found)
	promised.given = &given
	p.settle(w)
	if out == promisable {
		promised.askedAt = p.placesNews
	}
	return out
}

// placesOn finds out whether there is room now or will be, at these very places rather
// than at others.
func (e *Engine) placesOn(asks []place.Ask, at []place.Assignment) (verdict, []place.Assignment) {
	near := e.stillNear(asks, at)
	if near && e.places.FitsAt(asks, at, place.Now) {
		return admissible, at
	}
	if found, fault := e.places.Find(asks, place.Now); fault == nil {
		return admissible, found
	}
	if near && e.places.FitsAt(asks, at, place.Planned) {
		return promisable, at
	}
	if found, fault := e.places.Find(asks, place.Planned); fault == nil {
		return promisable, found
	}
	return hopeless, nil
}

// stillNear reports whether it is certain that places which were found are as near each other as the asks want: labels of nodes change.
// Of asks that go together, or in parts, only a new search can tell.
func (e *Engine) stillNear(asks []place.Ask, at []place.Assignment) bool {
	for i := range min(len(asks), len(at)) {
		ask := &asks[i]
		switch {
		case ask.Group != "", len(ask.Slices) > 0, ask.ExclusiveKey != "":
			return false
		case ask.Mandatory && !e.inOneDomain(ask, at[i].Nodes):
			return false
		}
	}
	return true
}

// inOneDomain reports whether the nodes are in one domain of the ask's level.
func (e *Engine) inOneDomain(ask *place.Ask, nodes []place.NodeCount) bool {
	levels := e.topologies[e.flavors[ask.Flavor].Topology]
	for _, level := range levels[:slices.Index(levels, ask.Level)+1] {
		for _, n := range nodes {
			domain, _ := e.places.LabelOf(nodes[0].Node, level)
			if is, known := e.places.LabelOf(n.Node, level); !known || is != domain {
				return false
			}
		}
	}
	return true
}

// fits reports whether the amounts are free at this moment.
func fits(n *quota.Node, v quota.Vector) bool {
	return !slices.ContainsFunc(v, func(a quota.Amount) bool { return n.Available(quota.Held, a.Index) < a.Value })
}

// promisees are those of the queue who were promised something, in the order of names.
func (e *Engine) promisees(q *clusterQueue) []*workload {
	var out []*workload
	for _, r := range q.promised.All() { // not all hold anything: places alone may be promised
		out = append(out, e.workloads[r.Key])
	}
	slices.SortFunc(out, func(a, b *workload) int {
		return cmp.Or(cmp.Compare(a.Key.Namespace, b.Key.Namespace), cmp.Compare(a.Key.Name, b.Key.Name))
	})
	return out
}
