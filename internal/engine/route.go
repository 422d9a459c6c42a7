package engine

import (
	"slices"
	"time"

	"github.com/musterhq/muster/internal/engine/order"
	"github.com/musterhq/muster/internal/engine/preempt"
	"github.com/musterhq/muster/internal/engine/quota"
	"github.com/musterhq/muster/internal/engine/reason"
	"github.com/musterhq/muster/internal/engine/waiting"
)

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

func (e *Engine) leaveLocal(w *workload) {
	w.localEntry.Remove()
	e.dropIfUnused(w.local)
	w.local = nil
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

// replanGrowers lets the workloads to grow, for which the workload was to shrink or stop, choose others, or it again
// later.
func (e *Engine) replanGrowers(w *workload) {
	if w.queue == nil || w.queue.family == nil {
		return
	}
	for _, q := range w.queue.family.queues {
		for _, grower := range q.elastic {
			if uid, asked := grower.preempted[w.Key]; asked && uid == w.UID {
				delete(grower.preempted, w.Key)
				grower.growing = nil
				e.updateCharges(grower)
			}
		}
	}
}

// retryRefused routes the workloads again whose delay is over.
func (e *Engine) retryRefused(now time.Time) {
	for {
		key, due := e.waiting.Take(waiting.RetryRefused, now)
		if !due {
			return
		}
		w := e.workloads[key]
		w.refusal.waiting = false
		if w.held == nil {
			e.route(w)
			continue
		}
		e.updateCharges(w) // it may be evicted again
		e.nodes.queueRepair(w)
		if w.queue != nil && w.queue.family != nil {
			w.queue.family.enqueue() // and it may grow
		}
	}
}

// forgetAvoidance clears the avoided nodes of workloads whose time is over.
func (e *Engine) forgetAvoidance(now time.Time) {
	for {
		key, due := e.waiting.Take(waiting.ForgetAvoided, now)
		if !due {
			return
		}
		w := e.workloads[key]
		w.avoid.timed = false
		if w.held != nil {
			continue // the time starts again when it loses its places
		}
		w.avoid = avoidance{times: w.avoid.times + 1}
		if w.nomination == nil {
			e.route(w)
			continue
		}
		w.nomination.checkedAt = -1 // others were evicted for it: it keeps the nomination, and may use the nodes as well
		w.placed.shape = nil
		e.nodes.updatePlaces(w)
		w.queue.family.enqueue()
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

// nominees returns the workloads of the queue with a promise, sorted by key.
func (e *Engine) nominees(q *clusterQueue) []*workload {
	var out []*workload
	for _, r := range q.nominated.All() { // not all are holders: a promise may be of places alone
		out = append(out, e.workloads[r.Key])
	}
	slices.SortFunc(out, func(a, b *workload) int { return order.CompareKeys(a.Key, b.Key) })
	return out
}

// updateCharges updates ledgers and tallies to what the workload holds or was promised.
func (e *Engine) updateCharges(w *workload) {
	was := w.charged
	now := charges{queue: w.queue, local: w.local, count: w.counts()}
	if w.held != nil {
		now.held = e.ledgers.vectorOf(w.held)
		switch {
		case w.lostItsNodes():
			now.planned = now.held
		case !w.leaving():
			now.planned = e.ledgers.plannedOf(w)
		}
	} else if w.nomination != nil {
		now.planned = w.nomination.usage
	} else if w.Unheld && w.queue != nil {
		now.held = e.evaluator.firstFlavors(w)
		now.planned = now.held
	}
	if w.queue != nil && len(now.planned) > 0 && w.assumed != resizes && !w.leaving() && !w.isRefused(reductionChange) && (w.held != nil || w.nomination != nil) {
		now.holder = &preempt.Holder{Key: w.Key, Priority: w.Priority, QueuedAt: w.QueuedAt,
			ReservedAt: w.ReservedAt, Usage: now.planned, Promised: w.nomination != nil}
		e.ledgers.setSpare(w, now.holder)
	}
	e.charge(was, now)
	if was.holder != nil {
		was.queue.removeHolder(was.holder)
	}
	if now.holder != nil {
		now.queue.addHolder(now.holder)
	}
	if now.queue != nil && (was.queue != now.queue || !slices.Equal(was.planned, now.planned) || !sameHolder(was.holder, now.holder)) {
		now.queue.waits.Charged(now.planned, now.holder)
		if now.queue.family != nil && now.holder != nil && w.resizableSet() >= 0 {
			now.queue.family.enqueue() // it may grow, or others for whom it yields
			now.queue.waits.Shrinkable(now.holder)
		}
	}
	e.recount(was, now)
	w.charged = now
	e.growths.list(w)
	e.growths.noteSurplus(w)
	e.nodes.updatePlaces(w)
}

// charge updates the ledgers from one state to the next.
func (e *Engine) charge(was, now charges) {
	if was.queue == now.queue && slices.Equal(was.held, now.held) && slices.Equal(was.planned, now.planned) {
		return
	}
	e.tallies.moveShares(was.queue)
	was.queue.recharged()
	if now.queue != was.queue {
		e.tallies.moveShares(now.queue)
		now.queue.recharged()
	}
	if was.queue != nil {
		e.tree.Release(was.queue.Name, quota.Held, was.held)
		e.tree.Release(was.queue.Name, quota.Planned, was.planned)
		was.queue.released(decreased(was, now, was.held, now.held))
		was.queue.released(decreased(was, now, was.planned, now.planned))
	}
	if now.queue != nil {
		e.tree.Charge(now.queue.Name, quota.Held, now.held)
		e.tree.Charge(now.queue.Name, quota.Planned, now.planned)
	}
}

// decreased returns the indices of which less is charged after than before, of the same queue.
func decreased(was, now charges, before, after quota.Vector) []quota.Index {
	var out []quota.Index
	for _, a := range before {
		if was.queue != now.queue || after.Of(a.Index) < a.Value {
			out = append(out, a.Index)
		}
	}
	return out
}

func sameHolder(a, b *preempt.Holder) bool {
	if a == nil || b == nil {
		return a == b
	}
	return preempt.CompareHolders(a, b) == 0 && a.Spare == b.Spare && slices.Equal(a.Pod, b.Pod)
}

// recount updates the numbers of the queues from one state to the next.
func (e *Engine) recount(was, now charges) {
	if was.queue == now.queue && was.local == now.local && was.count == now.count && slices.Equal(was.held, now.held) {
		return
	}
	e.tallies.count(was, -1)
	e.tallies.count(now, 1)
	if was.queue != nil && was.queue != now.queue {
		e.forgetIfUnused(was.queue)
	}
	if was.count.unready && e.tallies.unready == 0 && e.options.BlockUntilReady == BlockAll {
		for _, f := range e.families {
			f.enqueue() // all families waited for this workload
		}
	}
	if e.options.AdmissionFairSharing != nil && !slices.Equal(was.held, now.held) {
		e.usageHistory.updateStanding(was.local)
		e.usageHistory.updateStanding(now.local)
	}
}
