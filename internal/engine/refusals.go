package engine

import (
	"github.com/musterhq/muster/internal/engine/state"
	"github.com/musterhq/muster/internal/engine/waiting"
)

// A workload whose admission was rejected stops no other, and none shrinks for it, before a trial has shown that the API
// server accepts its admission now. Its victims would be stopped in vain otherwise, be admitted again, and be stopped
// again at each retry. A trial is a dry run of the write that gives it the quota; its outcome is an event: Tried, Refused
// or Failed. It holds until the next rejection: if the admission is rejected all the same, it must be tried again, and the
// delay before each retry bounds how often others can be stopped in vain.
// An engine that starts learns of the rejection from the reason in the status. Where that shows another reason by now,
// because the quota was short, too, the workload may preempt once before it is rejected again.

// refusals has the workloads for which the API server rejected a change, until the next try.
type refusals struct{ timers *waiting.Timers }

// backOff notes that a change to the workload was rejected, and until when none of its kind is tried again.
func (r *refusals) backOff(w *state.Workload, ev Refused) {
	if ev.Generation != w.Generation {
		return // its spec has changed since
	}
	of, times := w.AssumedChange(), 1
	if w.Refusal.Generation == ev.Generation && w.Refusal.Kind == of {
		times = w.Refusal.Times + 1
	}
	w.Refusal = state.Refusal{Message: ev.Message, Generation: ev.Generation, Kind: of, Times: times, Waiting: true}
	w.Growing = nil
	r.timers.Set(waiting.RetryRefused, w.Key, ev.At.Round(0).Add(state.RetryAfter(times)))
}

// clear forgets the rejection of a change to the workload.
func (r *refusals) clear(w *state.Workload) {
	w.Refusal = state.Refusal{}
	r.timers.Stop(waiting.RetryRefused, w.Key)
}
