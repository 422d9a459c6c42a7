package engine

import (
	"math"
	"slices"
	"sort"
	"strings"

	"github.com/musterhq/muster/internal/engine/order"
	"github.com/musterhq/muster/internal/engine/place"
	"github.com/musterhq/muster/internal/engine/preempt"
	"github.com/musterhq/muster/internal/engine/quota"
)

// evict evicts the victim. A workload with only a promise is routed again, and one whose admission may not be written
// yet is withdrawn.
func (p *pass) evict(v preempt.Victim, preemptor *workload) {
	w := p.engine.workloads[v.Key]
	p.engine.precedence.Note(preemptor.Key, w.Key)
	if v.Promised {
		p.engine.route(w)
		return
	}
	eviction := &Eviction{Preemptor: preemptor.Key, PreemptorUID: preemptor.UID, Cause: v.Cause,
		PreemptorPath: path(preemptor.queue.node), Path: path(v.Queue)}
	if w.assumed == admits {
		w.withdrawn = eviction
		p.engine.updateCharges(w)
		p.addDecision(w, preemptor.Priority, Decision{Withdraw: true})
		return
	}
	p.decideEviction(w, eviction, preemptor.Priority)
}

// NoteEviction tells an engine that has made no decisions for which other workload one was evicted. Like those that it
// decided, it bars the one from preempting the other.
func (e *Engine) NoteEviction(evicted, preemptor Key) {
	if evicted != preemptor && e.workloads[evicted] != nil && e.workloads[preemptor] != nil && !e.precedence.Over(preemptor).Has(evicted) {
		e.precedence.Note(preemptor, evicted)
	}
}

// forgetPrecedence forgets which workloads were evicted for the given one, and for which it was. It unblocks those that
// were evicted for it: they may evict it now, or those for which it was evicted.
func (e *Engine) forgetPrecedence(key Key) {
	under := e.precedence.Under(key)
	e.precedence.Forget(key)
	for loser := range under {
		if w := e.workloads[loser]; w != nil && w.class != nil && w.class.Head().Key == loser {
			w.class.Reevaluate()
		}
	}
}

func (p *pass) decideEviction(w *workload, eviction *Eviction, urgency int32) {
	w.assumed, w.decidedOn, w.growing = evicts, w.Version, nil
	p.engine.updateCharges(w)
	p.addDecision(w, urgency, Decision{Evict: eviction})
}

// evictWithdrawn evicts withdrawn workloads whose admission was written all the same, if another workload still waits
// for their capacity and may still evict them. They count as leaving until then: otherwise the waiting workload would
// lose its promise, others evicted for it would be admitted again, and it would evict them again, without end.
func (p *pass) evictWithdrawn() {
	if p.engine.writtenWithdrawals.Len() == 0 {
		return
	}
	p.engine.markUnsorted(math.MaxInt)
	keys := p.engine.writtenWithdrawals.UnsortedList()
	slices.SortFunc(keys, order.CompareKeys)
	for _, key := range keys {
		w := p.engine.workloads[key]
		if f := w.queue.family; f != nil && f.unsorted {
			continue // the workload that waits for it may be about to leave the queue
		}
		p.engine.writtenWithdrawals.Delete(key)
		eviction := w.withdrawn
		w.withdrawn = nil
		by := p.waiterFor(w, eviction)
		if w.Evicted || by == nil {
			p.engine.updateCharges(w)
			continue
		}
		p.makeWay(w, by, p.evictionFor(w, by, eviction))
	}
}

// makeWay evicts a workload whose withdrawn admission was written, unless it can keep what it has, or some of its pods,
// beside what is promised to others.
func (p *pass) makeWay(w, by *workload, eviction *Eviction) {
	if p.fitsBeside(w, w.held) {
		p.engine.updateCharges(w)
		return
	}
	p.engine.precedence.Note(by.Key, w.Key)
	at := w.resizableSet()
	if at < 0 || !w.Admitted {
		p.decideEviction(w, eviction, by.Priority)
		return
	}
	set := &w.held.PodSets[at]
	most := int(max(0, set.Count-w.leastOf(at)))
	fewer := 1 + sort.Search(most, func(n int) bool {
		given := w.held.sized(at, set.Count-int32(n)-1, nil)
		given.PodSets[at].Surplus = nil // it counts only until it is gone
		return p.fitsBeside(w, given)
	})
	if fewer > most {
		p.decideEviction(w, eviction, by.Priority)
		return
	}
	p.resize(w, at, w.held.sized(at, set.Count-int32(fewer), nil), by.Key)
}

// fitsBeside reports whether a workload that counts as leaving could have this instead, in the planned ledger.
func (p *pass) fitsBeside(w *workload, given *Admission) bool {
	if replicasPlanned(w.queue.node, p.engine.ledgers.vectorOf(given)) == 0 {
		return false
	}
	asks := p.engine.nodes.asksOf(w.PodSets, given.PodSets, avoidance{})
	return !given.onNodes() || p.engine.nodes.finder.FitsAt(asks, placesOf(asks, given.PodSets), place.Planned)
}

// trackWithdrawn schedules that decision once a withdrawn workload is known to hold its quota.
func (e *Engine) trackWithdrawn(w *workload) {
	if w.withdrawn != nil && w.assumed == nothing {
		e.writtenWithdrawals.Insert(w.Key)
	} else {
		e.writtenWithdrawals.Delete(w.Key)
	}
}

// waiterFor returns the workload that waits for what the given one holds and may evict it by the rules as they are now:
// the preemptor, or the first in order of those that took over what was promised to the preemptor. It returns nil if
// there is none.
func (p *pass) waiterFor(w *workload, eviction *Eviction) *workload {
	preemptor := p.engine.workloads[eviction.Preemptor]
	if preemptor == nil || preemptor.UID != eviction.PreemptorUID {
		return nil
	}
	has := p.engine.ledgers.vectorOf(w.held)
	waits := func(by *workload) bool {
		return by.awaitsAnyOf(has) && !by.mustTry() && p.engine.evaluator.mayEvict(by, w)
	}
	if waits(preemptor) {
		return preemptor
	}
	var first *workload
	for key := range p.engine.precedence.Over(preemptor.Key) {
		if by := p.engine.workloads[key]; waits(by) && (first == nil || order.Compare(by.rank(), first.rank()) < 0) {
			first = by
		}
	}
	return first
}

// mayEvict reports whether the rules let a workload with a promise evict the one that holds quota, whatever else does.
func (ev *evaluator) mayEvict(by, w *workload) bool {
	h := &preempt.Holder{Key: w.Key, Priority: w.Priority, QueuedAt: w.QueuedAt}
	ev.ledgers.setSpare(w, h)
	p := ev.preemptor(by, by.queue, by.promise.usage, nil)
	return w.queue.node != nil && p.MayEvict(h, w.queue.node)
}

// awaitsAnyOf reports whether the workload was promised some of any of the amounts.
func (w *workload) awaitsAnyOf(amounts quota.Vector) bool {
	return w.promise != nil && slices.ContainsFunc(amounts, func(a quota.Amount) bool { return a.Value > 0 && w.promise.usage.Of(a.Index) > 0 })
}

// evictionFor returns the eviction with the workload that waits now as its preemptor.
func (p *pass) evictionFor(w, by *workload, was *Eviction) *Eviction {
	if by.Key == was.Preemptor {
		return was
	}
	cause := preempt.ReclaimedWhileBorrowing
	switch {
	case by.queue == w.queue:
		cause = preempt.InQueue
	case by.reclaimsFrom(w.queue.node):
		cause = preempt.Reclaimed
	case p.engine.options.FairSharing != nil:
		cause = preempt.FairShare
	}
	return &Eviction{Preemptor: by.Key, PreemptorUID: by.UID, Cause: cause, PreemptorPath: path(by.queue.node), Path: was.Path}
}

// reclaimsFrom reports whether what the workload was promised is its queue's own quota, or that of a cohort above it
// which is not above the other queue too.
func (w *workload) reclaimsFrom(other *quota.Node) bool {
	above := map[*quota.Node]bool{}
	for n := other; n != nil; n = n.Parent() {
		above[n] = true
	}
	for n := w.queue.node; n != nil && !above[n]; n = n.Parent() {
		if !slices.ContainsFunc(w.promise.usage, func(a quota.Amount) bool { return n.Over(quota.Planned, a.Index, 0) > 0 }) {
			return true
		}
	}
	return false
}

// path returns the path from the root cohort to the node.
func path(n *quota.Node) string {
	var names []string
	for ; n != nil; n = n.Parent() {
		names = append([]string{n.Name()}, names...)
	}
	return "/" + strings.Join(names, "/")
}
