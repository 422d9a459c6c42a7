package engine

import (
	"math"
	"sort"

	"github.com/musterhq/muster/internal/engine/nodes"
	"github.com/musterhq/muster/internal/engine/order"
	"github.com/musterhq/muster/internal/engine/place"
	"github.com/musterhq/muster/internal/engine/preempt"
	"github.com/musterhq/muster/internal/engine/state"
)

// evict evicts the victim. A workload with only a nomination is routed again, and one whose admission may not be
// written yet is withdrawn.
func (e *evictionPass) evict(v preempt.Victim, preemptor *state.Workload) {
	w := e.engine.workloads[v.Key]
	e.engine.evictions.precedence.Note(preemptor.Key, w.Key)
	if v.Nominated {
		e.engine.route(w)
		return
	}
	eviction := &Eviction{Preemptor: preemptor.Key, PreemptorUID: preemptor.UID, Cause: v.Cause,
		PreemptorPath: preemptor.ClusterQueue.Node.Path(), Path: v.Queue.Path()}
	if w.Assumed == state.Admits {
		w.Withdrawn = eviction
		e.engine.updateCharges(w)
		e.pass.addDecision(w, preemptor.Priority, Decision{Withdraw: true})
		return
	}
	e.decideEviction(w, eviction, preemptor.Priority)
}

func (e *evictionPass) decideEviction(w *state.Workload, eviction *Eviction, urgency int32) {
	w.Assumed, w.DecidedOn, w.Growing = state.Evicts, w.Version, nil
	e.engine.updateCharges(w)
	e.pass.addDecision(w, urgency, Decision{Evict: eviction})
}

// evictWithdrawn evicts withdrawn workloads whose admission was written all the same, if another workload still waits
// for their capacity and may still evict them. They count as leaving until then: otherwise the waiting workload would
// lose its nomination, others evicted for it would be admitted again, and it would evict them again, without end.
func (e *evictionPass) evictWithdrawn() {
	if e.engine.evictions.written.Len() == 0 {
		return
	}
	e.engine.routing.markUnsorted(e.engine.families, math.MaxInt)
	for _, key := range order.SortedKeys(e.engine.evictions.written) {
		w := e.engine.workloads[key]
		if f := w.ClusterQueue.Family; f != nil && f.Unsorted {
			continue // the workload that waits for it may be about to leave the queue
		}
		e.engine.evictions.written.Delete(key)
		eviction := w.Withdrawn
		w.Withdrawn = nil
		by := e.waiterFor(w, eviction)
		if w.Evicted || by == nil {
			e.engine.updateCharges(w)
			continue
		}
		e.makeWay(w, by, e.evictionFor(w, by, eviction))
	}
}

// makeWay evicts a workload whose withdrawn admission was written, unless it can keep what it has, or some of its pods,
// beside what is nominated for others.
func (e *evictionPass) makeWay(w, by *state.Workload, eviction *Eviction) {
	if e.fitsBeside(w, w.Held) {
		e.engine.updateCharges(w)
		return
	}
	e.engine.evictions.precedence.Note(by.Key, w.Key)
	at := w.ResizableSet()
	if at < 0 || !w.Admitted {
		e.decideEviction(w, eviction, by.Priority)
		return
	}
	set := &w.Held.PodSets[at]
	most := int(max(0, set.Count-w.LeastOf(at)))
	fewer := 1 + sort.Search(most, func(n int) bool {
		given := w.Held.Sized(at, set.Count-int32(n)-1, nil)
		given.PodSets[at].Surplus = nil // it counts only until it is gone
		return e.fitsBeside(w, given)
	})
	if fewer > most {
		e.decideEviction(w, eviction, by.Priority)
		return
	}
	e.pass.resize(w, at, w.Held.Sized(at, set.Count-int32(fewer), nil), by.Key)
}

// fitsBeside reports whether a workload that counts as leaving could have this instead, in the planned ledger.
func (e *evictionPass) fitsBeside(w *state.Workload, given *Admission) bool {
	if state.ReplicasPlanned(w.ClusterQueue.Node, e.engine.ledgers.VectorOf(given)) == 0 {
		return false
	}
	asks := e.engine.nodes.AsksOf(w.PodSets, given.PodSets, state.Avoidance{})
	return !given.OnNodes() || e.engine.nodes.Finder.FitsAt(asks, nodes.PlacesOf(asks, given.PodSets), place.Planned)
}

// waiterFor returns the workload that waits for what the given one holds and may evict it by the rules as they are now:
// the preemptor, or the first in order of those that took over what was nominated for the preemptor. It returns nil if
// there is none.
func (e *evictionPass) waiterFor(w *state.Workload, eviction *Eviction) *state.Workload {
	preemptor := e.engine.workloads[eviction.Preemptor]
	if preemptor == nil || preemptor.UID != eviction.PreemptorUID {
		return nil
	}
	has := e.engine.ledgers.VectorOf(w.Held)
	waits := func(by *state.Workload) bool {
		return by.AwaitsAnyOf(has) && !by.MustTry() && e.engine.evaluator.MayEvict(by, w)
	}
	if waits(preemptor) {
		return preemptor
	}
	var first *state.Workload
	for key := range e.engine.evictions.precedence.Over(preemptor.Key) {
		if by := e.engine.workloads[key]; waits(by) && (first == nil || order.Compare(by.Rank(), first.Rank()) < 0) {
			first = by
		}
	}
	return first
}

// evictionFor returns the eviction with the workload that waits now as its preemptor.
func (e *evictionPass) evictionFor(w, by *state.Workload, was *Eviction) *Eviction {
	if by.Key == was.Preemptor {
		return was
	}
	cause := preempt.ReclaimedWhileBorrowing
	switch {
	case by.ClusterQueue == w.ClusterQueue:
		cause = preempt.InQueue
	case by.ReclaimsFrom(w.ClusterQueue.Node):
		cause = preempt.Reclaimed
	case e.engine.options.FairSharing != nil:
		cause = preempt.FairShare
	}
	return &Eviction{Preemptor: by.Key, PreemptorUID: by.UID, Cause: cause,
		PreemptorPath: by.ClusterQueue.Node.Path(), Path: was.Path}
}

// forget forgets which workloads were evicted for the given one, and for which it was. It unblocks those that
// were evicted for it: they may evict it now, or those for which it was evicted.
func (e *evictions) forget(key Key) {
	under := e.precedence.Under(key)
	e.precedence.Forget(key)
	for loser := range under {
		if w := e.workloads[loser]; w != nil && w.Class != nil && w.Class.Head().Key == loser {
			w.Class.Reevaluate()
		}
	}
}
