package engine

import (
	"time"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/musterhq/muster/internal/engine/state"
	"github.com/musterhq/muster/internal/engine/waiting"
)

// A workload whose admission was rejected stops no other, and none shrinks for it, before a trial has shown that the
// API server accepts its admission now. Its victims would be stopped in vain otherwise, be admitted again, and be
// stopped again at each retry. A trial is a dry run of the write that gives it the quota; its outcome is an event:
// Tried, Refused or Failed. It holds until the next rejection: if the admission is rejected all the same, it must be
// tried again, and the delay before each retry bounds how often others can be stopped in vain. An engine that starts
// learns of the rejection from the reason in the status. Where that shows another reason by now, because the quota was
// short, too, the workload may preempt once before it is rejected again.

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

// What kube-scheduler knows of a node and place.Map does not, such as volumes or pod affinity, may change without an
// event. So a node that it refused for a pod is avoided as long as the workload has places, and for some time after
// it has lost them. One admission may take as many moves as there are refusing nodes, so that this time grows with
// their number, and with each repetition. Where a pod of the workload itself is the reason, the node is not avoided: it
// only gets fewer pods of the workload.

// avoidances has the workloads without places that avoid nodes.
type avoidances struct {
	workloads map[Key]*state.Workload
	// untimed are those for which no expiry is scheduled yet; the others have one in timers.
	untimed sets.Set[Key]
	timers  *waiting.Timers
}

// forget forgets a workload that is gone.
func (a *avoidances) forget(key Key) {
	a.untimed.Delete(key)
	a.timers.Stop(waiting.ForgetAvoided, key)
}

// limit limits how long a workload without places avoids nodes, counted from the end of the next Decide.
func (a *avoidances) limit(w *state.Workload) {
	if w.Held == nil && w.Avoid.Any() && !w.Avoid.Timed {
		a.untimed.Insert(w.Key)
	}
}

// schedule schedules the expiry for workloads that have lost their places.
func (a *avoidances) schedule(now time.Time) {
	for key := range a.untimed {
		of := &a.workloads[key].Avoid
		of.Timed = true
		a.timers.Set(waiting.ForgetAvoided, key, now.Add(of.Duration()))
	}
	clear(a.untimed)
}
