package engine

import (
	"time"

	"github.com/musterhq/muster/internal/engine/order"
	"github.com/musterhq/muster/internal/engine/reason"
)

// After a refusal an admission is tried again: who refused it may be a policy or a quota
// that is mended without a change of the workload. The first try comes after firstRetry,
// each later one after twice as long, up to longestRetry.
//
// Who holds quota and cannot be told to go, to have another size or other places stays as it is for as long:
// nobody waits for what it has, others are looked for.
const (
	firstRetry   = time.Second
	longestRetry = 5 * time.Minute
)

// refusal is what the API server has against the admission of a workload, or another change of its status, as of
// one generation.
type refusal struct {
	message    string
	generation int64
	// times counts how often it was refused. waiting tells that it is not tried again yet.
	times   int
	waiting bool
}

// stands reports whether nothing must be decided about a workload of that generation now.
func (r *refusal) stands(generation int64) bool { return r.waiting && r.generation == generation }

func (r *refusal) why() reason.Reason { return reason.RefusedAdmission(r.message) }

// holdOff has nothing be decided about the workload before some time is over.
func (e *Engine) holdOff(w *workload, ev Refused) {
	times := 1
	if w.refusal.generation == ev.Generation {
		times = w.refusal.times + 1
	}
	w.refusal = refusal{message: ev.Message, generation: ev.Generation, times: times, waiting: true}
	e.refused.Push(order.Rank{Since: ev.At.Round(0).Add(retryAfter(times)), Key: w.Key})
}

// forgive forgets what was refused to the workload.
func (e *Engine) forgive(w *workload) {
	w.refusal = refusal{}
	e.refused.Remove(w.Key)
}

// retryAfter is how long to wait after so many refusals.
func retryAfter(times int) time.Duration {
	wait := firstRetry
	for range times - 1 {
		if wait *= 2; wait >= longestRetry {
			return longestRetry
		}
	}
	return wait
}

// tryRefused has those looked at again who have waited long enough. Who would have to wait
// for longer than anybody ever does was refused before the clock was set back.
func (e *Engine) tryRefused(now time.Time) {
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
		e.settle(w) // others may have it go again
		e.mendLater(w)
	}
}

// Due is when Decide has something to do though there is no news; zero for never.
func (e *Engine) Due() time.Time {
	due := e.sampleDue
	if next, ok := e.refused.Peek(); ok && (due.IsZero() || next.Since.Before(due)) {
		due = next.Since
	}
	if next, ok := e.forgetting.Peek(); ok && (due.IsZero() || next.Since.Before(due)) {
		due = next.Since
	}
	for _, at := range e.growths {
		if due.IsZero() || at.Before(due) {
			due = at
		}
	}
	return due
}
