package engine

import (
	"slices"
	"time"

	"github.com/musterhq/muster/internal/engine/durations"
	"github.com/musterhq/muster/internal/engine/preempt"
	"github.com/musterhq/muster/internal/engine/quota"
	"github.com/musterhq/muster/internal/engine/reason"
	"github.com/musterhq/muster/internal/engine/state"
	"github.com/musterhq/muster/internal/engine/waiting"
)

// route adds a workload that holds nothing to the waiting ones of its queue, and updates its charges.
func (e *Engine) route(w *state.Workload) {
	e.leave(w)
	w.Local.MarkRouted(w)
	var q *state.ClusterQueue
	switch {
	case w.Held != nil:
		q = e.queue(w.Held.ClusterQueue)
	case w.Local.Exists:
		q = e.queue(w.Local.ClusterQueue)
	}
	if q != w.ClusterQueue {
		e.starts.forget(w)
	}
	w.ClusterQueue = q
	e.updateCharges(w)
	e.avoidances.limit(w)
	if w.Held != nil {
		w.Why = reason.Reason{}
		e.reports.unreported.drop(w.Key)
		e.nodes.QueueRepair(w)
		return
	}
	if w.ClusterQueue != nil && e.routing.changed.Has(w.ClusterQueue.Name) {
		w.ClusterQueue.Unrouted.Add(&w.QueueEntry) // until the queue's own change is processed
		return
	}
	if w.ClusterQueue != nil {
		w.ClusterQueue.Waiting.Add(&w.QueueEntry)
	}
	if why := e.whyInadmissible(w); why.Code != reason.None {
		e.starts.forget(w)
		e.reports.set(w, why)
		return
	}
	e.joinClass(w, w.ClusterQueue)
}

// leave takes the workload out of its class and its lists, and breaks its nomination.
func (e *Engine) leave(w *state.Workload) {
	if w.Class != nil {
		w.LeaveClass()
	}
	if w.Nomination != nil {
		w.WithdrawNomination()
	}
	w.QueueEntry.Remove()
}

func (e *Engine) leaveLocal(w *state.Workload) {
	w.LocalEntry.Remove()
	e.routing.dropIfUnused(w.Local)
	w.Local = nil
}

// forget removes the workload from all state.
func (e *Engine) forget(w *state.Workload) {
	e.leave(w)
	e.starts.forget(w)
	w.Held, w.Before, w.ClusterQueue, w.Assumed, w.Growing, w.Withdrawn = nil, nil, nil, state.Nothing, nil, nil
	w.Gone = true
	e.evictions.written.Delete(w.Key)
	e.nodes.DeferredRepairs.Delete(w.Key)
	e.updateCharges(w)
	e.leaveLocal(w)
	e.shapes.release(w.Shape)
	e.reports.unreported.drop(w.Key)
	e.waiting.Stop(waiting.RetryRefused, w.Key)
	e.avoidances.forget(w.Key)
	e.evictions.forget(w.Key)
	delete(e.superseded, w.Key)
	delete(e.workloads, w.Key)
}

// rollBack rolls back what was assumed for the workload and routes it again.
func (e *Engine) rollBack(w *state.Workload) {
	if w.AssumedChange() == state.ReductionChange {
		e.replanGrowers(w)
	}
	if w.Assumed == state.Admits {
		w.Held, w.Withdrawn = nil, nil
		w.Local.Refund(w.Key)
		e.starts.revoked(w)
	}
	if w.Before != nil {
		w.Held, w.Before = w.Before, nil
	}
	if w.Assumed == state.Resizes {
		w.ResizedAt = w.ResizedBefore // the resize did not happen
	}
	if w.NodesFailed {
		e.nodes.DeferredRepairs.Insert(w.Key) // its places are as invalid as before
	}
	w.Assumed, w.NodesFailed = state.Nothing, false
	e.route(w)
	e.nodes.QueueRepair(w)
}

// observeAdmission sets what the workload holds to the observed admission, nil for none. An assumption is kept only
// while the observation may be from before its write.
func (e *Engine) observeAdmission(w *state.Workload, observed *Admission) {
	was := w.Assumed
	switch {
	case observed != nil && w.Before != nil && observed.Equal(w.Before):
		// The observation may be from before the write of the assumption, which is kept until the result of the write
		// is reported.
	case observed != nil:
		if w.Held, w.Before = observed, nil; was == state.Admits {
			e.starts.confirmed(w)
		}
		if w.Assumed != state.Evicts {
			w.Assumed = state.Nothing
		}
	case w.Assumed != state.Admits:
		if w.Held != nil {
			e.refusals.clear(w) // the rejected change was to what it held
			w.Forecast = durations.Forecast{}
		}
		w.Held, w.Before, w.Assumed = nil, nil, state.Nothing
	}
	if was != state.Nothing && w.Assumed == state.Nothing {
		e.superseded[w.Key] = w.Serial
	}
	w.NodesFailed = w.NodesFailed && w.Held != nil
	if w.Held == nil {
		w.Growing, w.GrowthFailed, w.Preempted, w.Withdrawn = nil, false, nil, nil
	}
}

// unconfirmed returns the workload if the result is that of its current unconfirmed decision, and nil otherwise.
func (e *Engine) unconfirmed(key Key, uid string, serial int64) *state.Workload {
	w := e.workloads[key]
	if w == nil || w.UID != uid || w.Assumed == state.Nothing || serial != 0 && serial != w.Serial {
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
func (e *Engine) replanGrowers(w *state.Workload) {
	if w.ClusterQueue == nil || w.ClusterQueue.Family == nil {
		return
	}
	for _, q := range w.ClusterQueue.Family.Queues {
		for _, grower := range q.Elastic {
			if uid, asked := grower.Preempted[w.Key]; asked && uid == w.UID {
				delete(grower.Preempted, w.Key)
				grower.Growing = nil
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
		w.Refusal.Waiting = false
		if w.Held == nil {
			e.route(w)
			continue
		}
		e.updateCharges(w) // it may be evicted again
		e.nodes.QueueRepair(w)
		if w.ClusterQueue != nil {
			w.ClusterQueue.Family.Enqueue() // and it may grow
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
		w.Avoid.Timed = false
		if w.Held != nil {
			continue // the time starts again when it loses its places
		}
		w.Avoid = state.Avoidance{Times: w.Avoid.Times + 1}
		if w.Nomination == nil {
			e.route(w)
			continue
		}
		w.Nomination.CheckedAt = -1 // others were evicted for it: it keeps the nomination, and may use the nodes as well
		e.nodes.Refresh(w)
		w.ClusterQueue.Family.Enqueue()
	}
}

// nominate makes the workload wait for capacity that will be released.
func (e *Engine) nominate(w *state.Workload, given *Admission, usage quota.Vector, why reason.Reason) {
	w.Nomination = &state.Nomination{Given: given, Usage: usage, Why: why, CheckedAt: -1}
	e.updateCharges(w)
	e.reports.set(w, why)
	q := w.ClusterQueue
	q.Family.Nominated.Push(w.Rank())
	q.Nominated.Push(w.Rank())
	if q.Strategy == Strict {
		e.reports.reportReady(q, state.WhyBehind(q))
	}
}

// updateCharges updates ledgers and tallies to what the workload holds or has nominated.
func (e *Engine) updateCharges(w *state.Workload) {
	was := w.Charged
	now := state.Charges{Queue: w.ClusterQueue, Local: w.Local, Count: w.Counts()}
	if w.Held != nil {
		now.Held = e.ledgers.VectorOf(w.Held)
		switch {
		case w.LostItsNodes():
			now.Planned = now.Held
		case !w.Leaving():
			now.Planned = e.ledgers.PlannedOf(w)
		}
	} else if w.Nomination != nil {
		now.Planned = w.Nomination.Usage
	} else if w.Unheld && w.ClusterQueue != nil {
		now.Held = e.evaluator.FirstFlavors(w)
		now.Planned = now.Held
	}
	if w.ClusterQueue != nil && len(now.Planned) > 0 && w.Assumed != state.Resizes && !w.Leaving() &&
		!w.IsRefused(state.ReductionChange) && (w.Held != nil || w.Nomination != nil) {
		now.Holder = &preempt.Holder{Key: w.Key, Priority: w.Priority, QueuedAt: w.QueuedAt,
			ReservedAt: w.ReservedAt, Usage: now.Planned, Nominated: w.Nomination != nil}
		e.ledgers.SetSpare(w, now.Holder)
	}
	e.tallies.charge(was, now)
	if was.Holder != nil {
		was.Queue.RemoveHolder(was.Holder)
	}
	if now.Holder != nil {
		now.Queue.AddHolder(now.Holder)
	}
	if now.Queue != nil && (was.Queue != now.Queue || !slices.Equal(was.Planned, now.Planned) ||
		!sameHolder(was.Holder, now.Holder)) {
		now.Queue.Waits.Charged(now.Planned, now.Holder)
		if now.Queue.Family != nil && now.Holder != nil && w.ResizableSet() >= 0 {
			now.Queue.Family.Enqueue() // it may grow, or others for whom it yields
			now.Queue.Waits.Shrinkable(now.Holder)
		}
	}
	e.recount(was, now)
	w.Charged = now
	e.growths.List(w)
	e.growths.NoteSurplus(w)
	e.nodes.UpdatePlaces(w)
	e.starts.runs.Keep(w, &was)
}

func sameHolder(a, b *preempt.Holder) bool {
	if a == nil || b == nil {
		return a == b
	}
	return preempt.CompareHolders(a, b) == 0 && a.Spare == b.Spare && slices.Equal(a.Pod, b.Pod)
}

// recount updates the numbers of the queues from one state to the next.
func (e *Engine) recount(was, now state.Charges) {
	if was.Queue == now.Queue && was.Local == now.Local && was.Count == now.Count && slices.Equal(was.Held, now.Held) {
		return
	}
	e.tallies.count(was, -1)
	e.tallies.count(now, 1)
	if was.Queue != nil && was.Queue != now.Queue {
		e.routing.forgetIfUnused(was.Queue)
	}
	if was.Count.Unready && e.tallies.unready == 0 && e.options.BlockUntilReady == BlockAll {
		for _, f := range e.families {
			f.Enqueue() // all families waited for this workload
		}
	}
	if e.options.AdmissionFairSharing != nil && !slices.Equal(was.Held, now.Held) {
		e.usageHistory.updateStanding(was.Local)
		e.usageHistory.updateStanding(now.Local)
	}
}
