package translate

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/engine/order"
	"github.com/musterhq/muster/internal/workload"
)

// The engine learns how long jobs of a kind take from runs that came to their end: that succeeded, or were stopped at
// their limit. A run that was evicted, deleted or that failed says nothing about the next one.

// stoppedAtLimit is the reason of an eviction because of the maximum execution time.
const stoppedAtLimit = kueue.WorkloadDeactivatedDueTo + kueue.WorkloadMaximumExecutionTimeExceeded

// runEnded returns the event for a run that has come to its end between two versions of a Workload, none if it has not.
// before is nil if the Workload was not known, or was known to be over.
func (t *Translator) runEnded(before, after *kueue.Workload) []engine.Event {
	if before == nil || before.UID != after.UID || workload.IsEvicted(before) {
		return nil
	}
	if event, _, ok := t.run(after, before); ok {
		return []engine.Event{event}
	}
	return nil
}

// run returns how long the Workload ran until the end that its conditions say, and when that was; ok is false if it has
// not come to its end. before is an earlier version of the Workload, or the same.
func (t *Translator) run(w, before *kueue.Workload) (event engine.RunEnded, at time.Time, ok bool) {
	began := workload.TrueSince(w, kueue.WorkloadAdmitted)
	if began.IsZero() { // a Workload without a job gives its quota back at once
		began = workload.TrueSince(before, kueue.WorkloadAdmitted)
	}
	if began.IsZero() {
		return event, at, false
	}
	evicted, finished := workload.IfTrue(w, kueue.WorkloadEvicted), workload.IfTrue(w, kueue.WorkloadFinished)
	switch {
	case evicted != nil && evicted.Reason == stoppedAtLimit:
		at, ok = evicted.LastTransitionTime.Time, true
	case evicted == nil && finished != nil:
		at = finished.LastTransitionTime.Time
		ok = finished.Reason == kueue.WorkloadFinishedReasonSucceeded ||
			finished.Reason == kueue.WorkloadFinishedReasonFailed // at its limit, which is checked below
	}
	if !ok || at.Before(began) {
		return event, at, false
	}
	podSets, _ := t.account(before)
	event = engine.RunEnded{Time: timeOf(before, podSets), Took: at.Sub(began)}
	event.Time.Ends = time.Time{}
	if evicted == nil && finished.Reason == kueue.WorkloadFinishedReasonFailed {
		limit := event.Time.Limit
		ok = limit > 0 && event.Time.Ran+event.Took >= limit
	}
	return event, at, ok
}

// EndedBefore returns the events for the runs that had come to their end before the operator started, in the order of
// their ends. objects are those that the watches delivered first, in their order: a Workload that ends later among them
// is not returned, since Changed returns the event for it.
func (t *Translator) EndedBefore(objects []client.Object) []engine.Event {
	type run struct {
		engine.RunEnded
		at  time.Time
		key engine.Key
	}
	var runs []run
	seen := map[types.UID]bool{}
	for _, object := range objects {
		w, ok := object.(*kueue.Workload)
		if !ok || seen[w.UID] {
			continue
		}
		seen[w.UID] = true
		if !workload.IsFinished(w) {
			continue
		}
		if event, at, ok := t.run(w, w); ok {
			runs = append(runs, run{event, at, KeyOf(w)})
		}
	}
	slices.SortFunc(runs, func(a, b run) int { return cmp.Or(a.at.Compare(b.at), order.CompareKeys(a.key, b.key)) })
	events := make([]engine.Event, len(runs))
	for i := range runs {
		events[i] = runs[i].RunEnded
	}
	return events
}
