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
// Who holds quota and cannot be told to go, or to be smaller, stays as it is for as long: nobody waits for what it has, others
// are looked for. Who cannot be told of another size or of other places is told of none for as long, and has room made of it as
// anybody has.
const (
	firstRetry   = time.Second
	longestRetry = 5 * time.Minute
)

// refusal is what the API server has against a change of a workload's status, as of one generation.
type refusal struct {
	message    string
	generation int64
	of         refused
	// times counts how often it was refused. waiting tells that it is not tried again yet.
	times   int
	waiting bool
}

// refused is what a workload was to be told of.
type refused int

const (
	// anAdmission gives quota to who has none.
	anAdmission refused = iota
	// aYield takes quota from who has some: all of it or a part.
	aYield
	// aGrowth is a larger size.
	aGrowth
	// places are others than it has.
	places
)

// refusing is what the assumption about the workload is of, for a refusal of it.
func (w *workload) refusing() refused {
	switch {
	case w.assumed == admits:
		return anAdmission
	case w.assumed == replaces:
		return places
	case w.assumed == resizes && w.before != nil && w.held.pods() > w.before.pods():
		return aGrowth
	}
	return aYield
}

// stands reports whether what was refused must not be decided about a workload of that generation now.
func (r *refusal) stands(generation int64) bool { return r.waiting && r.generation == generation }

// isRefused reports whether the workload can be told of nothing of the kind for now.
func (w *workload) isRefused(of refused) bool {
	return w.refusal.of == of && w.refusal.stands(w.Generation)
}

func (r *refusal) why() reason.Reason { return reason.RefusedAdmission(r.message) }

// holdOff has what was refused about the workload not be decided before some time is over.
func (e *Engine) holdOff(w *workload, ev Refused) {
	if ev.Generation != w.Generation {
		return // it is another workload by now
	}
	of, times := w.refusing(), 1
	if w.refusal.generation == ev.Generation && w.refusal.of == of {
		times = w.refusal.times + 1
	}
	w.refusal = refusal{message: ev.Message, generation: ev.Generation, of: of, times: times, waiting: true}
	w.growing = nil
	e.refused.Push(order.Rank{Since: ev.At.Round(0).Add(retryAfter(times)), Key: w.Key})
}

// asksOthers has those to grow for whom the workload was to yield ask others, or the same one later: it has not.
func (e *Engine) asksOthers(w *workload) {
	if w.queue == nil || w.queue.family == nil {
		return
	}
	for _, q := range w.queue.family.queues {
		for _, grower := range q.elastic {
			if uid, asked := grower.displaced[w.Key]; asked && uid == w.UID {
				delete(grower.displaced, w.Key)
				grower.growing = nil
				e.settle(grower)
			}
		}
	}
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
		if w.queue != nil && w.queue.family != nil {
			w.queue.family.put() // and it may grow
		}
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
