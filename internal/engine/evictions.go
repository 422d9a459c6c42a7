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
