package engine

import (
	"math"
	"slices"
	"sort"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/musterhq/muster/internal/engine/order"
	"github.com/musterhq/muster/internal/engine/place"
	"github.com/musterhq/muster/internal/engine/preempt"
	"github.com/musterhq/muster/internal/engine/quota"
)

// evictions has which workloads were evicted for which other ones, and the evictions that are still to be decided.
type evictions struct {
	precedence *preempt.Precedence
	// written are withdrawn workloads whose admission was written all the same: the next pass decides whether to evict
	// them.
	written sets.Set[Key]
}

// evictionPass is the evictions in a pass.
type evictionPass struct{ pass *pass }

// evict evicts the victim. A workload with only a promise is routed again, and one whose admission may not be written
// yet is withdrawn.
func (e *evictionPass) evict(v preempt.Victim, preemptor *workload) {
	w := e.pass.engine.workloads[v.Key]
	e.pass.engine.evictions.precedence.Note(preemptor.Key, w.Key)
	if v.Promised {
		e.pass.engine.route(w)
		return
	}
	eviction := &Eviction{Preemptor: preemptor.Key, PreemptorUID: preemptor.UID, Cause: v.Cause,
		PreemptorPath: path(preemptor.queue.node), Path: path(v.Queue)}
	if w.assumed == admits {
		w.withdrawn = eviction
		e.pass.engine.updateCharges(w)
		e.pass.addDecision(w, preemptor.Priority, Decision{Withdraw: true})
		return
	}
	e.decideEviction(w, eviction, preemptor.Priority)
}

// NoteEviction tells an engine that has made no decisions for which other workload one was evicted. Like those that it
// decided, it bars the one from preempting the other.
func (e *Engine) NoteEviction(evicted, preemptor Key) {
	precedence := e.evictions.precedence
	if evicted != preemptor && e.workloads[evicted] != nil && e.workloads[preemptor] != nil &&
		!precedence.Over(preemptor).Has(evicted) {
		precedence.Note(preemptor, evicted)
	}
}

// forgetPrecedence forgets which workloads were evicted for the given one, and for which it was. It unblocks those that
// were evicted for it: they may evict it now, or those for which it was evicted.
func (e *Engine) forgetPrecedence(key Key) {
	under := e.evictions.precedence.Under(key)
	e.evictions.precedence.Forget(key)
	for loser := range under {
		if w := e.workloads[loser]; w != nil && w.class != nil && w.class.Head().Key == loser {
			w.class.Reevaluate()
		}
	}
}

func (e *evictionPass) decideEviction(w *workload, eviction *Eviction, urgency int32) {
	w.assumed, w.decidedOn, w.growing = evicts, w.Version, nil
	e.pass.engine.updateCharges(w)
	e.pass.addDecision(w, urgency, Decision{Evict: eviction})
}

// evictWithdrawn evicts withdrawn workloads whose admission was written all the same, if another workload still waits
// for their capacity and may still evict them. They count as leaving until then: otherwise the waiting workload would
// lose its promise, others evicted for it would be admitted again, and it would evict them again, without end.
func (e *evictionPass) evictWithdrawn() {
	if e.pass.engine.evictions.written.Len() == 0 {
		return
	}
	e.pass.engine.markUnsorted(math.MaxInt)
	keys := e.pass.engine.evictions.written.UnsortedList()
	slices.SortFunc(keys, order.CompareKeys)
	for _, key := range keys {
		w := e.pass.engine.workloads[key]
		if f := w.queue.family; f != nil && f.unsorted {
			continue // the workload that waits for it may be about to leave the queue
		}
		e.pass.engine.evictions.written.Delete(key)
		eviction := w.withdrawn
		w.withdrawn = nil
		by := e.waiterFor(w, eviction)
		if w.Evicted || by == nil {
			e.pass.engine.updateCharges(w)
			continue
		}
		e.makeWay(w, by, e.evictionFor(w, by, eviction))
	}
}

// makeWay evicts a workload whose withdrawn admission was written, unless it can keep what it has, or some of its pods,
// beside what is promised to others.
func (e *evictionPass) makeWay(w, by *workload, eviction *Eviction) {
	if e.fitsBeside(w, w.held) {
		e.pass.engine.updateCharges(w)
		return
	}
	e.pass.engine.evictions.precedence.Note(by.Key, w.Key)
	at := w.resizableSet()
	if at < 0 || !w.Admitted {
		e.decideEviction(w, eviction, by.Priority)
		return
	}
	set := &w.held.PodSets[at]
	most := int(max(0, set.Count-w.leastOf(at)))
	fewer := 1 + sort.Search(most, func(n int) bool {
		given := w.held.Sized(at, set.Count-int32(n)-1, nil)
		given.PodSets[at].Surplus = nil // it counts only until it is gone
		return e.fitsBeside(w, given)
	})
	if fewer > most {
		e.decideEviction(w, eviction, by.Priority)
		return
	}
	e.pass.resize(w, at, w.held.Sized(at, set.Count-int32(fewer), nil), by.Key)
}

// fitsBeside reports whether a workload that counts as leaving could have this instead, in the planned ledger.
func (e *evictionPass) fitsBeside(w *workload, given *Admission) bool {
	if replicasPlanned(w.queue.node, e.pass.engine.ledgers.vectorOf(given)) == 0 {
		return false
	}
	asks := e.pass.engine.nodes.asksOf(w.PodSets, given.PodSets, avoidance{})
	return !given.OnNodes() || e.pass.engine.nodes.finder.FitsAt(asks, placesOf(asks, given.PodSets), place.Planned)
}

// trackWithdrawn schedules that decision once a withdrawn workload is known to hold its quota.
func (e *evictions) trackWithdrawn(w *workload) {
	if w.withdrawn != nil && w.assumed == nothing {
		e.written.Insert(w.Key)
	} else {
		e.written.Delete(w.Key)
	}
}

// waiterFor returns the workload that waits for what the given one holds and may evict it by the rules as they are now:
// the preemptor, or the first in order of those that took over what was promised to the preemptor. It returns nil if
// there is none.
func (e *evictionPass) waiterFor(w *workload, eviction *Eviction) *workload {
	preemptor := e.pass.engine.workloads[eviction.Preemptor]
	if preemptor == nil || preemptor.UID != eviction.PreemptorUID {
		return nil
	}
	has := e.pass.engine.ledgers.vectorOf(w.held)
	waits := func(by *workload) bool {
		return by.awaitsAnyOf(has) && !by.mustTry() && e.pass.engine.evaluator.mayEvict(by, w)
	}
	if waits(preemptor) {
		return preemptor
	}
	var first *workload
	for key := range e.pass.engine.evictions.precedence.Over(preemptor.Key) {
		if by := e.pass.engine.workloads[key]; waits(by) && (first == nil || order.Compare(by.rank(), first.rank()) < 0) {
			first = by
		}
	}
	return first
}

// mayEvict reports whether the rules let a workload with a promise evict the one that holds quota, whatever else does.
func (ev *evaluator) mayEvict(by, w *workload) bool {
	h := &preempt.Holder{Key: w.Key, Priority: w.Priority, QueuedAt: w.QueuedAt}
	ev.ledgers.setSpare(w, h)
	p := ev.preemptor(by, by.queue, by.nomination.usage, nil)
	return w.queue.node != nil && p.MayEvict(h, w.queue.node)
}

// awaitsAnyOf reports whether the workload was promised some of any of the amounts.
func (w *workload) awaitsAnyOf(amounts quota.Vector) bool {
	return w.nomination != nil && slices.ContainsFunc(amounts, func(a quota.Amount) bool { return a.Value > 0 && w.nomination.usage.Of(a.Index) > 0 })
}

// evictionFor returns the eviction with the workload that waits now as its preemptor.
func (e *evictionPass) evictionFor(w, by *workload, was *Eviction) *Eviction {
	if by.Key == was.Preemptor {
		return was
	}
	cause := preempt.ReclaimedWhileBorrowing
	switch {
	case by.queue == w.queue:
		cause = preempt.InQueue
	case by.reclaimsFrom(w.queue.node):
		cause = preempt.Reclaimed
	case e.pass.engine.options.FairSharing != nil:
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
		if !slices.ContainsFunc(w.nomination.usage, func(a quota.Amount) bool { return n.Over(quota.Planned, a.Index, 0) > 0 }) {
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
