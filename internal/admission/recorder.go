package admission

import (
	"context"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
)

// mostLate bounds the warnings that wait for time to be told, and the memory for their jobs.
const mostLate = 500

// boundedRecorder passes on as many events as there is time for: a broadcaster would write each of a storm, at once and side by
// side. Of the others warnings wait for their turn, mostLate of them, since most tell what went wrong for good and are told once;
// what is dropped stands in the status of the job all the same.
type boundedRecorder struct {
	events.EventRecorder
	budget *writeBudget
	// late are the warnings that wait, oldest first, each of which tells itself; waiting counts them and the one whose turn it is.
	late    chan func()
	waiting atomic.Int32
}

func newBoundedRecorder(recorder events.EventRecorder, budget *writeBudget) *boundedRecorder {
	return &boundedRecorder{EventRecorder: recorder, budget: budget, late: make(chan func(), mostLate)}
}

// Eventf records the event, has it wait, or drops it. None passes a warning that waits: people read events in the order in which
// they are written.
func (r *boundedRecorder) Eventf(regarding, related runtime.Object, eventtype, reason, action, note string, args ...any) {
	if r.waiting.Load() == 0 && r.Tell(regarding, related, eventtype, reason, action, note, args...) {
		return
	}
	if eventtype == corev1.EventTypeWarning {
		r.waiting.Add(1)
		select {
		case r.late <- func() { r.EventRecorder.Eventf(regarding, related, eventtype, reason, action, note, args...) }:
			return
		default:
			r.waiting.Add(-1)
		}
	}
	droppedEvents.Inc()
}

// Tell records the event if there is time for it now, and reports whether there was. One that it has no time for is not counted as
// dropped: of what holds it is told later.
func (r *boundedRecorder) Tell(regarding, related runtime.Object, eventtype, reason, action, note string, args ...any) bool {
	if !r.budget.mayTell() {
		return false
	}
	r.EventRecorder.Eventf(regarding, related, eventtype, reason, action, note, args...)
	return true
}

// Start tells what waits, as there is time for it, until the context ends.
func (r *boundedRecorder) Start(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case tell := <-r.late:
			if r.budget.waitForEvent(ctx) != nil {
				return nil
			}
			tell()
			r.waiting.Add(-1)
		}
	}
}
