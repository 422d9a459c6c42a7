package admission

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
)

// mostLate bounds the warnings that wait for time to be told, and the memory for their jobs.
const mostLate = 100

// boundedRecorder passes on as many events as there is time for: a broadcaster would write each of a storm, at once and side by
// side. What is dropped stands in the status of the job, or of its Workload, all the same.
type boundedRecorder struct {
	events.EventRecorder
	budget *writeBudget
	// late are the warnings that wait, oldest first, each of which tells itself.
	late chan func()
}

func newBoundedRecorder(recorder events.EventRecorder, budget *writeBudget) *boundedRecorder {
	return &boundedRecorder{EventRecorder: recorder, budget: budget, late: make(chan func(), mostLate)}
}

// Eventf records the event. One that there is no time for waits if it is a warning, since most of these tell what went wrong for good and
// are told once.
func (r *boundedRecorder) Eventf(regarding, related runtime.Object, eventtype, reason, action, note string, args ...any) {
	if eventtype != corev1.EventTypeWarning {
		r.tellOrDrop(regarding, related, eventtype, reason, action, note, args...)
		return
	}
	if r.Tell(regarding, related, eventtype, reason, action, note, args...) {
		return
	}
	select {
	case r.late <- func() { r.EventRecorder.Eventf(regarding, related, eventtype, reason, action, note, args...) }:
	default:
		droppedEvents.Inc()
	}
}

// tellOrDrop records the event if there is time for it now, which it does not take from warnings that wait.
func (r *boundedRecorder) tellOrDrop(regarding, related runtime.Object, eventtype, reason, action, note string, args ...any) {
	if len(r.late) > 0 || !r.Tell(regarding, related, eventtype, reason, action, note, args...) {
		droppedEvents.Inc()
	}
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
		}
	}
}
