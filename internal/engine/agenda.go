package engine

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/musterhq/muster/internal/engine/durations"
	"github.com/musterhq/muster/internal/engine/order"
	"github.com/musterhq/muster/internal/engine/state"
)

// processAgenda processes the families on the agenda, within the budget, except for those with workloads that must be
// routed again.
func (p *pass) processAgenda() {
	// no longer exist
	todo := slices.DeleteFunc(p.engine.agenda, func(f *state.Family) bool { return p.engine.families[f.Name] != f })
	p.engine.agenda = nil
	slices.SortFunc(todo, func(a, b *state.Family) int { return cmp.Compare(a.Name, b.Name) })
	if p.engine.routing.changed.Len()+p.engine.routing.relocated.Len() > 0 {
		todo = p.sorted(todo)
	}
	switch some, done := p.planFirst(todo); {
	case !done:
		p.engine.agenda = append(p.engine.agenda, todo...)
	case p.engine.options.BlockUntilReady == BlockAll:
		p.processInOrder(todo)
	case some:
		slices.SortStableFunc(todo, compareFirst)
		p.takeTurns(todo)
	default:
		p.takeTurns(p.fromLast(todo))
	}
}

// sorted returns the families of which all workloads are sorted into their queues, and puts the others on the agenda of
// the next pass. If one admission may block all others, all families wait for each other.
func (p *pass) sorted(families []*state.Family) (sorted []*state.Family) {
	any := p.engine.routing.markUnsorted(p.engine.families, len(families))
	p.engine.agenda = make(state.Agenda, 0, len(families))
	for _, f := range families {
		if f.Unsorted || any && p.engine.options.BlockUntilReady == BlockAll {
			p.engine.agenda = append(p.engine.agenda, f)
		} else {
			sorted = append(sorted, f)
		}
	}
	return sorted
}

// planFirst plans the starts of trees that are new to the engine, before any tree admits a workload: they may share
// nodes. Otherwise, after a restart, a workload of one tree could take the nodes that the first of another waits for.
// It reports whether there were some, and whether it has planned all: else the next pass goes on.
func (p *pass) planFirst(todo []*state.Family) (some, done bool) {
	if len(p.engine.families) < 2 || len(p.engine.nodes.Topologies) == 0 {
		return false, true
	}
	if slices.ContainsFunc(p.engine.agenda, (*state.Family).IsUnplanned) {
		return false, false // its workloads are not sorted yet
	}
	for _, f := range todo {
		if !f.IsUnplanned() {
			continue
		}
		if p.findHeads(f, func(*contestant) {}); p.budget <= 0 {
			f.Waits.Cut()
			return some, false // what was found hopeless stays blocked
		}
		some, f.Planned = true, true
	}
	return some, true
}

// compareFirst orders families by the first workload of each that waits to be evaluated; those without one come last.
func compareFirst(a, b *state.Family) int {
	first, ok := a.First()
	second, okToo := b.First()
	return cmp.Or(order.TrueFirst(ok, okToo), order.Compare(first, second))
}

// findHeads finds the head of each queue of the family that has one, as at the beginning of a pass, and blocks the
// hopeless classes before it. It reports whether the budget ended before all were found.
func (p *pass) findHeads(f *state.Family, head func(*contestant)) (cut bool) {
	f.UpdateHoldBacks()
	f.Waits.Settle()
	p.engine.holdBacks.ChargeAll(f)
	defer p.engine.holdBacks.ReleaseAll(f)
	for _, q := range f.Queues {
		c, cutHere := p.headOf(q)
		if c != nil {
			head(c)
		}
		cut = cut || cutHere
	}
	return cut
}

// leastShare is the least part of the budget that a family gets, as it costs something to begin with one.
const leastShare = 50

// fromLast returns the families, sorted by name, from the one on that comes after the last one of the pass before.
func (p *pass) fromLast(todo []*state.Family) []*state.Family {
	next, _ := slices.BinarySearchFunc(todo, p.engine.lastDecided+"\x00",
		func(f *state.Family, name string) int { return cmp.Compare(f.Name, name) })
	if next == len(todo) {
		return todo
	}
	return slices.Concat(todo[next:], todo[:next])
}

// takeTurns processes the families in turn, each with a share of the budget, until all are done or the budget is spent.
// So no family has to wait for another, however much there is to evaluate in that.
func (p *pass) takeTurns(todo []*state.Family) {
	for len(todo) > 0 && p.budget > 0 {
		again := todo[:0]
		for n, f := range todo {
			if p.budget <= 0 {
				again = append(again, todo[n:]...)
				break
			}
			p.engine.lastDecided = f.Name
			share := min(p.budget, max(leastShare, p.budget/(len(todo)-n)))
			left := true
			p.spend(share, func() {
				for left && p.budget > 0 {
					left = p.decide(f)
				}
			})
			if f.Dirty = left; left {
				again = append(again, f)
			} else if p.reevaluateLater(f) {
				f.Enqueue()
			}
		}
		todo = again
	}
	p.engine.agenda = append(p.engine.agenda, todo...)
}

// processInOrder processes the families where one admission may block all others: the family whose head comes first in
// order goes first.
func (p *pass) processInOrder(todo []*state.Family) {
	if !p.sortByHead(todo) {
		p.engine.agenda = append(p.engine.agenda, todo...)
		return
	}
	for _, f := range todo {
		left := p.decide(f) // even if the search for the first one has cost all of the budget
		for left && p.budget > 0 {
			left = p.decide(f)
		}
		f.Dirty = false
		if left || p.reevaluateLater(f) {
			f.Enqueue()
		}
	}
}

// sortByHead sorts the families by the first workload in each that can be admitted or have something nominated, or
// whose nominated quota is available; families without one come last. Classes found hopeless are blocked. It reports
// whether all these workloads were found within the budget: none may be decided on before.
func (p *pass) sortByHead(families []*state.Family) (known bool) {
	cut := false
	firsts := map[*state.Family]order.Rank{}
	goes := func(f *state.Family, r order.Rank) {
		if first, ok := firsts[f]; !ok || order.Compare(r, first) < 0 {
			firsts[f] = r
		}
	}
	for _, f := range families {
		for _, r := range f.Nominated.All() {
			if w := p.engine.workloads[r.Key]; state.Fits(w.ClusterQueue.Node, w.Nomination.Usage) {
				goes(f, r)
			}
		}
		cut = p.findHeads(f, func(c *contestant) { goes(f, c.Rank) }) || cut
	}
	if cut {
		for _, f := range families {
			f.Waits.Cut()
		}
		return false
	}
	slices.SortStableFunc(families, func(a, b *state.Family) int {
		first, ok := firsts[a]
		second, okToo := firsts[b]
		return cmp.Or(order.TrueFirst(ok, okToo), order.Compare(first, second))
	})
	return true
}

// reroute routes all workloads of changed queues again, within the budget. ClusterQueues come first, so that a workload
// that moves between two of them is routed only once.
func (p *pass) reroute() {
	for _, name := range sets.List(p.engine.routing.changed) {
		p.engine.routing.changed.Delete(name)
		q := p.engine.queue(name)
		for w := q.Unrouted.First(); w != nil; w = q.Unrouted.First() {
			if p.budget <= 0 {
				p.engine.routing.changed.Insert(name)
				return
			}
			w.Forecast = durations.Forecast{} // the bounds of the queue may be others
			p.engine.route(w)
			p.budget--
		}
	}
	for _, l := range p.engine.routing.relocatedByLength() {
		if !p.rerouteMembers(l) {
			return
		}
		p.engine.routing.relocated.Delete(l.Key)
	}
}

// rerouteMembers does so for a LocalQueue: a workload that holds quota keeps it. It reports whether all workloads are
// done.
func (p *pass) rerouteMembers(l *state.LocalQueue) bool {
	for w := l.Unrouted.First(); w != nil; w = l.Unrouted.First() {
		if p.budget <= 0 {
			return false
		}
		p.budget--
		w.Forecast = durations.Forecast{}
		if w.Held == nil {
			p.engine.route(w)
			continue
		}
		l.MarkRouted(w)
		if w.ListedIn != nil && w.ClusterQueue.Family != nil { // it may be able to grow now, or no longer
			p.engine.updateCharges(w)
			w.ClusterQueue.Family.Enqueue()
		}
	}
	p.engine.routing.forgetLeft(l)
	return true
}
