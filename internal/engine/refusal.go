package engine

import (
	"time"

	"github.com/musterhq/muster/internal/engine/order"
	"github.com/musterhq/muster/internal/engine/reason"
)

// A rejected decision is tried again: a policy or a quota of the API server may have caused the rejection, and may be
// fixed without a change of the workload. The first try comes after firstRetry, each later one after twice the delay,
// up to longestRetry.
//
// Until then, a workload that could not be evicted or shrunk is left alone: no other waits for what it has, and other
// victims are chosen. A workload that could not be grown or given other places gets no such decision, but can be
// evicted or shrunk as usual.
const (
	firstRetry   = time.Second
	longestRetry = 5 * time.Minute
)

// refusal is the API server's rejection of a change to a workload's status, for one generation.
type refusal struct {
	message    string
	generation int64
	kind       changeKind
	// times counts the rejections. waiting is set until the next try.
	times   int
	waiting bool
}

// changeKind is the kind of change that was rejected.
type changeKind int

const (
	// admissionChange gives quota to a workload without any.
	admissionChange changeKind = iota
	// reductionChange takes all or part of a workload's quota.
	reductionChange
	// growthChange makes a workload larger.
	growthChange
	// placesChange gives a workload other places.
	placesChange
)

// assumedChange returns the kind of change that the workload's assumption is.
func (w *workload) assumedChange() changeKind {
	switch {
	case w.assumed == admits:
		return admissionChange
	case w.assumed == replaces:
		return placesChange
	case w.assumed == resizes && w.before != nil && w.held.pods() > w.before.pods():
		return growthChange
	}
	return reductionChange
}

// inForce reports whether the rejected kind of change must not be decided for that generation now.
func (r *refusal) inForce(generation int64) bool { return r.waiting && r.generation == generation }

// isRefused reports whether no change of the kind may be decided for the workload now.
func (w *workload) isRefused(of changeKind) bool {
	return w.refusal.kind == of && w.refusal.inForce(w.Generation)
}

func (r *refusal) why() reason.Reason { return reason.RefusedAdmission(r.message) }

// backOff backs off from the rejected change.
func (e *Engine) backOff(w *workload, ev Refused) {
	if ev.Generation != w.Generation {
		return // its spec has changed since
	}
	of, times := w.assumedChange(), 1
	if w.refusal.generation == ev.Generation && w.refusal.kind == of {
		times = w.refusal.times + 1
	}
	w.refusal = refusal{message: ev.Message, generation: ev.Generation, kind: of, times: times, waiting: true}
	w.growing = nil
	e.refused.Push(order.Rank{Since: ev.At.Round(0).Add(retryAfter(times)), Key: w.Key})
}

// replanGrowers lets the workloads to grow, for which the workload was to shrink or stop, choose others, or it again
// later.
func (e *Engine) replanGrowers(w *workload) {
	if w.queue == nil || w.queue.family == nil {
		return
	}
	for _, q := range w.queue.family.queues {
		for _, grower := range q.elastic {
			if uid, asked := grower.displaced[w.Key]; asked && uid == w.UID {
				delete(grower.displaced, w.Key)
				grower.growing = nil
				e.updateCharges(grower)
			}
		}
	}
}

// clearRefusal clears the refusal of the workload.
func (e *Engine) clearRefusal(w *workload) {
	w.refusal = refusal{}
	e.refused.Remove(w.Key)
}

// retryAfter returns the delay after so many rejections.
func retryAfter(times int) time.Duration {
	wait := firstRetry
	for range times - 1 {
		if wait *= 2; wait >= longestRetry {
			return longestRetry
		}
	}
	return wait
}

// retryRefused routes the workloads again whose delay is over. A delay longer than the maximum was set before the clock
// was set back, and counts as over.
func (e *Engine) retryRefused(now time.Time) {
	for {
		next, ok := e.refused.Peek()
		if !ok || next.Since.After(now) && !next.Since.After(now.Add(longestRetry)) {
			return
		}
		e.refused.Pop()
		w := e.workloads[next.Key]
		w.refusal.waiting = false
		if w.held == nil {
			e.route(w)
			continue
		}
		e.updateCharges(w) // it may be evicted again
		e.queueRepair(w)
		if w.queue != nil && w.queue.family != nil {
			w.queue.family.enqueue() // and it may grow
		}
	}
}
