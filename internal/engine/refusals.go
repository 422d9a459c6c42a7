package engine

import (
	"time"

	"github.com/musterhq/muster/internal/engine/reason"
	"github.com/musterhq/muster/internal/engine/waiting"
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

// A workload whose admission was rejected stops no other, and none shrinks for it, before a trial has shown that the API
// server accepts its admission now. Its victims would be stopped in vain otherwise, be admitted again, and be stopped
// again at each retry. A trial is a dry run of the write that gives it the quota; its outcome is an event: Tried, Refused
// or Failed. It holds until the next rejection: if the admission is rejected all the same, it must be tried again, and the
// delay before each retry bounds how often others can be stopped in vain.
// An engine that starts learns of the rejection from the reason in the status. Where that shows another reason by now,
// because the quota was short, too, the workload may preempt once before it is rejected again.

// refusal is the API server's rejection of a change to a workload's status, for one generation.
type refusal struct {
	message    string
	generation int64
	kind       changeKind
	// times counts the rejections. waiting is set until the next try.
	times   int
	waiting bool
	// proven is set by a trial of the admission that succeeded since the rejection.
	proven bool
}

// reportedRefusal returns the rejection of the admission that the status of a workload tells of.
func reportedRefusal(w *Workload) refusal {
	word, is := reason.RefusalIn(w.ReportedMessage)
	if w.ReportedCode != reason.Inadmissible || !is {
		return refusal{}
	}
	return refusal{message: word, generation: w.Generation, kind: admissionChange, times: 1}
}

// mustTry reports whether the workload's admission must be tried before any other workload is stopped for it.
func (w *workload) mustTry() bool {
	r := &w.refusal
	return r.times > 0 && r.kind == admissionChange && r.generation == w.Generation && !r.proven
}

// try asks the API server whether it would accept this admission. The workload waits aside until the answer.
func (p *pass) try(w *workload, given *Admission) {
	w.assumed, w.decidedOn = tries, w.Version
	p.engine.reports.set(w, w.refusal.why())
	p.addDecision(w, w.Priority, Decision{Try: given})
}

func (t Tried) apply(e *Engine) {
	if w := e.unconfirmed(t.Key, t.UID, t.Serial); w != nil && w.assumed == tries {
		w.refusal.proven = true
		e.rollBack(w)
	}
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
	case w.assumed == admits, w.assumed == tries:
		return admissionChange
	case w.assumed == replaces:
		return placesChange
	case w.assumed == resizes && w.before != nil && w.held.Pods() > w.before.Pods():
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

// refusals has the workloads for which the API server rejected a change, until the next try.
type refusals struct{ timers *waiting.Timers }

// backOff notes that a change to the workload was rejected, and until when none of its kind is tried again.
func (r *refusals) backOff(w *workload, ev Refused) {
	if ev.Generation != w.Generation {
		return // its spec has changed since
	}
	of, times := w.assumedChange(), 1
	if w.refusal.generation == ev.Generation && w.refusal.kind == of {
		times = w.refusal.times + 1
	}
	w.refusal = refusal{message: ev.Message, generation: ev.Generation, kind: of, times: times, waiting: true}
	w.growing = nil
	r.timers.Set(waiting.RetryRefused, w.Key, ev.At.Round(0).Add(retryAfter(times)))
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

// clear forgets the rejection of a change to the workload.
func (r *refusals) clear(w *workload) {
	w.refusal = refusal{}
	r.timers.Stop(waiting.RetryRefused, w.Key)
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
