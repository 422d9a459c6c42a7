package engine

import (
	"cmp"
	"slices"

	"github.com/musterhq/muster/internal/engine/order"
)

// processAgenda processes the families on the agenda, within the budget.
func (p *pass) processAgenda() {
	todo := slices.DeleteFunc(p.agenda, func(f *family) bool { return p.families[f.name] != f }) // no longer exist
	p.agenda = nil
	slices.SortFunc(todo, func(a, b *family) int { return cmp.Compare(a.name, b.name) })
	if p.options.BlockUntilReady == BlockAll {
		p.processInOrder(todo)
	} else {
		p.takeTurns(todo)
	}
}

// leastShare is the least part of the budget that a family gets, as it costs something to begin with one.
const leastShare = 50

// takeTurns processes the families in turn, each with a share of the budget, until all are done or the budget is spent.
// The next pass goes on after the last one. So no family has to wait for another, however much there is to evaluate in
// that.
func (p *pass) takeTurns(todo []*family) {
	next, _ := slices.BinarySearchFunc(todo, p.lastDecided+"\x00", func(f *family, name string) int { return cmp.Compare(f.name, name) })
	todo = slices.Concat(todo[next:], todo[:next])
	for len(todo) > 0 && p.budget > 0 {
		var again []*family
		for n, f := range todo {
			if p.budget <= 0 {
				again = append(again, todo[n:]...)
				break
			}
			share := min(p.budget, max(leastShare, p.budget/(len(todo)-n)))
			p.lastDecided = f.name
			if p.decideWithin(share, f) {
				again = append(again, f)
			} else {
				f.dirty = false
			}
		}
		todo = again
	}
	p.agenda = append(p.agenda, todo...)
}

// decideWithin processes a family until it is done or this part of the budget is spent. It reports whether work is left.
func (p *pass) decideWithin(share int, f *family) (left bool) {
	p.spend(share, func() {
		left = true
		for left && p.budget > 0 {
			left = p.decide(f)
		}
	})
	return left
}

// processInOrder processes the families where one admission may block all others: the family whose head comes first in
// order goes first.
func (p *pass) processInOrder(todo []*family) {
	if !p.sortByHead(todo) {
		p.agenda = append(p.agenda, todo...)
		return
	}
	for _, f := range todo {
		left := p.decide(f) // even if the search for the first one has cost all of the budget
		for left && p.budget > 0 {
			left = p.decide(f)
		}
		f.dirty = false
		if left {
			f.enqueue()
		}
	}
}

// sortByHead sorts the families by the first workload in each that can be admitted or promised something, or whose
// promised quota is available; families without one come last. Classes found hopeless are blocked. It reports whether
// all these workloads were found within the budget: none may be decided on before.
func (p *pass) sortByHead(families []*family) (known bool) {
	cut := false
	firsts := map[*family]order.Rank{}
	goes := func(f *family, r order.Rank) {
		if first, ok := firsts[f]; !ok || order.Compare(r, first) < 0 {
			firsts[f] = r
		}
	}
	for _, f := range families {
		for _, r := range f.promised.All() {
			if w := p.workloads[r.Key]; fits(w.queue.node, w.promise.usage) {
				goes(f, r)
			}
		}
		f.updateClaims()
		f.wakeFreed()
		p.keepAll(f)
		for _, q := range f.queues {
			c, cutHere := p.headOf(q)
			if c != nil {
				goes(f, c.rank)
			}
			cut = cut || cutHere
		}
		p.releaseAllKept(f)
	}
	if cut {
		for _, f := range families {
			f.sweeping = true
		}
		return false
	}
	slices.SortStableFunc(families, func(a, b *family) int {
		first, ok := firsts[a]
		second, okToo := firsts[b]
		switch {
		case ok && okToo:
			return order.Compare(first, second)
		case ok:
			return -1
		case okToo:
			return 1
		default:
			return 0
		}
	})
	return true
}
