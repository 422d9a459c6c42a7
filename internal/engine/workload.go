package engine

import (
	"slices"
	"time"

	"github.com/musterhq/muster/internal/engine/elastic"
	"github.com/musterhq/muster/internal/engine/order"
	"github.com/musterhq/muster/internal/engine/place"
	"github.com/musterhq/muster/internal/engine/quota"
	"github.com/musterhq/muster/internal/engine/reason"
	"github.com/musterhq/muster/internal/engine/waiting"
)

// assumption is the kind of decision about a workload that the API server has not confirmed yet.
type assumption int

const (
	nothing assumption = iota
	admits
	replaces
	resizes
	evicts
	// tries: the API server is asked whether it would accept an admission. It holds nothing meanwhile.
	tries
)

// workload is a Workload with the engine's state for it.
type workload struct {
	Workload
	shape *shape
	local *localQueue
	// queue is the ClusterQueue in which it waits or whose quota it holds, nil if its LocalQueue names none.
	queue *clusterQueue
	// class is where it waits to be evaluated; nil if it does not.
	class *class
	// queueEntry is its entry in a list of its ClusterQueue while it holds nothing, localEntry its entry in a list of
	// its LocalQueue.
	queueEntry, localEntry order.Entry[*workload]
	// held is the admission as observed or assumed.
	held    *Admission
	assumed assumption
	// withdrawn is set once its admission was withdrawn: the eviction to make if the admission is written all the
	// same.
	withdrawn *Eviction
	// serial is that of the last decision about it, decidedOn the Version that was known at that time.
	serial, decidedOn int64
	// before is the admission before it was given other places or another size, until the write is confirmed.
	before *Admission
	// resizedBefore is ResizedAt before the last resize was decided.
	resizedBefore time.Time
	// promise is capacity that was promised to it, for which it waits.
	nomination *nomination
	// growing is what is planned for it beyond what it holds, once other workloads have released it.
	growing quota.Vector
	// growthFailed is set if other workloads shrank for its growth and it still could not grow.
	growthFailed bool
	// growthAwaits is the placesVersion for which pods were on the nodes yet that its growth is planned for.
	growthAwaits int
	// displaced has the UIDs of the workloads that stopped or shrank for its growth since it was admitted.
	preempted map[Key]string
	// vacated are the places of pods that have to terminate and may still exist.
	vacated []place.NodeCount
	// listedIn is the queue that lists it among its elastic workloads.
	listedIn *clusterQueue
	// placed is what place.Map has of it; avoid the nodes that kube-scheduler refused for it.
	placed placed
	avoid  avoidance
	// within are the nodes on which pods are counted whose assignment names domains only, by pod set.
	within map[string][]place.NodeCount
	// lostNodes is set if it is being evicted because its nodes failed; replacement is what it waits for if it keeps those
	// of its pods that have places.
	lostNodes   bool
	replacement *replacement
	// refusal is the API server's last rejection of a decision about it.
	refusal refusal
	why     reason.Reason
	// reported is the message of the reason that was reported last, reportedWhy that reason if this engine reported it.
	reported    string
	reportedWhy reason.Reason
	charged     charges
	// gone is set once the workload no longer exists and must not be counted.
	gone bool
}

func (w *workload) rank() order.Rank {
	return order.Rank{Priority: w.Priority, First: w.LostNodes, Since: w.QueuedAt, Key: w.Key}
}

// leaving reports whether it holds quota and is being evicted.
func (w *workload) leaving() bool {
	return w.held != nil && (w.Evicted || w.assumed == evicts || w.withdrawn != nil)
}

// lostItsNodes reports whether it is being evicted because its nodes failed. What it releases is promised to no other
// workload before it has had its own turn to be admitted again.
func (w *workload) lostItsNodes() bool {
	return w.leaving() && (w.lostNodes || w.Evicted && w.LostNodes)
}

func (ws WorkloadSet) apply(e *Engine) {
	w := e.workloads[ws.Key]
	if w != nil && w.UID != ws.UID {
		e.forget(w)
		w = nil
	}
	switch {
	case w == nil:
		w = &workload{Workload: Workload{Generation: ws.Generation}, refusal: reportedRefusal(&ws.Workload)}
		w.queueEntry.Of, w.localEntry.Of = w, w
		e.workloads[ws.Key] = w
	case ws.Version < w.Version:
		return // stale event
	}
	ws.PodSets = withinBounds(ws.PodSets)
	shape := e.shapeOf(ws.PodSets)
	if w.shape != nil {
		e.releaseShape(w.shape)
	}
	if w.held == nil && ws.Admission == nil && w.shape == shape && w.WaitsLike(ws.Workload) {
		// Nothing relevant changed: it keeps its position, and what it was promised.
		w.Workload = ws.Workload
		e.reports.refresh(w)
		return
	}
	e.leave(w)
	if w.local != nil && w.LocalKey() != ws.LocalKey() {
		e.leaveLocal(w)
	}
	if w.Generation != ws.Generation {
		e.forgetPrecedence(w.Key)
		e.refusals.clear(w)
	}
	w.Workload, w.shape = ws.Workload, shape
	if w.local == nil {
		w.local = e.local(w.LocalKey())
		w.local.members.Add(&w.localEntry)
	}
	if w.why.Code == reason.None {
		w.why, w.reported = reason.Reason{Code: ws.ReportedCode, Detail: ws.ReportedMessage}, ws.ReportedMessage
	}
	e.observeAdmission(w, ws.Admission)
	e.evictions.trackWithdrawn(w)
	e.route(w)
	e.reports.refresh(w)
	if w.listedIn != nil && w.queue.family != nil {
		w.queue.family.enqueue() // it may be able to grow now, or no longer
	}
}

// withinBounds returns the pod sets so that one of more pods than elastic.MaxReplicas keeps the size that it starts with,
// which may be smaller than its count like that of any other with a minimum. A policy refuses such elastic pod sets; one
// may be older, or the policies not installed.
func withinBounds(podSets []PodSet) []PodSet {
	tooLarge := func(ps PodSet) bool { return ps.Elastic > 0 && ps.Count > elastic.MaxReplicas }
	if !slices.ContainsFunc(podSets, tooLarge) {
		return podSets
	}
	podSets = slices.Clone(podSets)
	for i := range podSets {
		if tooLarge(podSets[i]) {
			podSets[i].Elastic, podSets[i].Wanted = 0, 0
		}
	}
	return podSets
}

// observeAdmission sets what the workload holds to the observed admission, nil for none. An assumption is kept only
// while the observation may be from before its write.
func (e *Engine) observeAdmission(w *workload, observed *Admission) {
	was := w.assumed
	switch {
	case observed != nil && w.before != nil && observed.Equal(w.before):
		// The observation may be from before the write of the assumption, which is kept until the result of the write
		// is reported.
	case observed != nil:
		w.held, w.before = observed, nil
		if w.assumed != evicts {
			w.assumed = nothing
		}
	case w.assumed != admits:
		if w.held != nil {
			e.refusals.clear(w) // the rejected change was to what it held
		}
		w.held, w.before, w.assumed = nil, nil, nothing
	}
	if was != nothing && w.assumed == nothing {
		e.superseded[w.Key] = w.serial
	}
	w.lostNodes = w.lostNodes && w.held != nil
	if w.held == nil {
		w.growing, w.growthFailed, w.preempted, w.withdrawn = nil, false, nil, nil
	}
}

func (wg WorkloadGone) apply(e *Engine) {
	if w := e.workloads[wg.Key]; w != nil {
		e.forget(w)
	}
}

// unconfirmed returns the workload if the result is that of its current unconfirmed decision, and nil otherwise.
func (e *Engine) unconfirmed(key Key, uid string, serial int64) *workload {
	w := e.workloads[key]
	if w == nil || w.UID != uid || w.assumed == nothing || serial != 0 && serial != w.serial {
		return nil
	}
	return w
}

// TakeSuperseded returns the serials, by workload, of the decisions that were superseded since the last call: the
// workload was observed with another state, or with the decided one, before the result of the write was reported.
// Writes of them that are still pending must be dropped: the engine no longer assumes them.
func (e *Engine) TakeSuperseded() map[Key]int64 {
	out := e.superseded
	if len(out) > 0 {
		e.superseded = map[Key]int64{}
	}
	return out
}

func (wr Written) apply(e *Engine) {
	w := e.unconfirmed(wr.Key, wr.UID, wr.Serial)
	if w == nil || wr.Version <= w.decidedOn {
		return // the last one: the result of an earlier decision
	}
	if w.Version > wr.Version {
		// It was written, and has been changed again since.
		e.rollBack(w)
		return
	}
	w.Evicted = w.Evicted || w.assumed == evicts
	w.Admitted = w.Admitted || w.assumed == admits && len(w.held.Checks) == 0
	w.LostNodes = w.LostNodes && w.assumed != admits || w.lostNodes
	w.assumed, w.before, w.Version = nothing, nil, wr.Version
	e.evictions.trackWithdrawn(w)
	e.refusals.clear(w)
	e.updateCharges(w)
	e.nodes.queueRepair(w)
}

func (r Refused) apply(e *Engine) {
	if w := e.unconfirmed(r.Key, r.UID, r.Serial); w != nil {
		e.refusals.backOff(w, r)
		e.rollBack(w)
	}
}

func (f Failed) apply(e *Engine) {
	if w := e.unconfirmed(f.Key, f.UID, f.Serial); w != nil {
		e.rollBack(w)
	}
}

// rollBack rolls back what was assumed for the workload and routes it again.
func (e *Engine) rollBack(w *workload) {
	if w.assumedChange() == reductionChange {
		e.replanGrowers(w)
	}
	if w.assumed == admits {
		w.held, w.withdrawn = nil, nil
		w.local.refund(w.Key)
	}
	if w.before != nil {
		w.held, w.before = w.before, nil
	}
	if w.assumed == resizes {
		w.ResizedAt = w.resizedBefore // the resize did not happen
	}
	if w.lostNodes {
		e.nodes.deferredRepairs.Insert(w.Key) // its places are as invalid as before
	}
	w.assumed, w.lostNodes = nothing, false
	e.route(w)
	e.nodes.queueRepair(w)
}

// forget removes the workload from all state.
func (e *Engine) forget(w *workload) {
	e.leave(w)
	w.held, w.before, w.queue, w.assumed, w.growing, w.withdrawn = nil, nil, nil, nothing, nil, nil
	w.gone = true
	e.evictions.written.Delete(w.Key)
	e.nodes.deferredRepairs.Delete(w.Key)
	e.updateCharges(w)
	e.leaveLocal(w)
	e.releaseShape(w.shape)
	e.reports.unreported.drop(w.Key)
	e.waiting.Stop(waiting.RetryRefused, w.Key)
	e.avoidances.forget(w.Key)
	e.forgetPrecedence(w.Key)
	delete(e.superseded, w.Key)
	delete(e.workloads, w.Key)
}

func (e *Engine) leaveLocal(w *workload) {
	w.localEntry.Remove()
	e.dropIfUnused(w.local)
	w.local = nil
}

// leave takes the workload out of its class and its lists, and breaks its promise.
func (e *Engine) leave(w *workload) {
	if w.class != nil {
		e.leaveClass(w)
	}
	if w.nomination != nil {
		e.withdrawNomination(w)
	}
	w.queueEntry.Remove()
}

// route adds a workload that holds nothing to the waiting ones of its queue, and updates its charges.
func (e *Engine) route(w *workload) {
	e.leave(w)
	w.local.markRouted(w)
	w.queue = nil
	switch {
	case w.held != nil:
		w.queue = e.queue(w.held.ClusterQueue)
	case w.local.exists:
		w.queue = e.queue(w.local.ClusterQueue)
	}
	e.updateCharges(w)
	e.avoidances.limit(w)
	if w.held != nil {
		w.why = reason.Reason{}
		e.reports.unreported.drop(w.Key)
		e.nodes.queueRepair(w)
		return
	}
	if w.queue != nil && e.changed.Has(w.queue.Name) {
		w.queue.unrouted.Add(&w.queueEntry) // until the queue's own change is processed
		return
	}
	if w.queue != nil {
		w.queue.waiting.Add(&w.queueEntry)
	}
	if why := e.whyInadmissible(w); why.Code != reason.None {
		e.reports.set(w, why)
		return
	}
	e.joinClass(w, w.queue)
}
