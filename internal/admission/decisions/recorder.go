package decisions

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"

	"github.com/musterhq/muster/internal/metrics"
	"github.com/musterhq/muster/internal/plain"
)

// droppedEvents counts events that the write budget did not permit.
var droppedEvents = metrics.NewCounter("muster_events_dropped_total",
	"Events about jobs that were not written because there were too many, or the API server was overloaded.").WithLabelValues()

// maxLateWarnings bounds the warnings that wait for the write budget, and the memory that they take.
const maxLateWarnings = 100

// boundedRecorder records events within the write budget: a plain broadcaster would write every event of a storm, all
// at once. What a dropped event says is also in the status of the job or of its Workload.
type boundedRecorder struct {
	events.EventRecorder
	budget *WriteBudget
	// late are the warnings that wait, oldest first; calling one records it.
	late chan func()
}

// NewBoundedRecorder returns a recorder that passes events on within the budget.
func NewBoundedRecorder(recorder events.EventRecorder, budget *WriteBudget) *boundedRecorder {
	return &boundedRecorder{EventRecorder: recorder, budget: budget, late: make(chan func(), maxLateWarnings)}
}

// Eventf records the event. If there is no budget for it now, a warning waits, since most warnings report something
// permanent, once; any other event is dropped.
func (b *boundedRecorder) Eventf(regarding, related runtime.Object,
	eventtype, reason, action, note string, args ...any) {
	record := b.recording(regarding, related, eventtype, reason, action, note, args...)
	switch {
	case eventtype != corev1.EventTypeWarning:
		b.recordOrDrop(record)
	case !b.try(record):
		select {
		case b.late <- record:
		default:
			droppedEvents.Inc()
		}
	}
}

// recordOrDrop records an event if there is budget for it now and no warning waits, and drops it otherwise.
func (b *boundedRecorder) recordOrDrop(record func()) {
	if len(b.late) > 0 || !b.try(record) {
		droppedEvents.Inc()
	}
}

// TryEventf records the event if there is budget for it now, and reports whether it did. An event that it does not
// record is not counted as dropped: it is for facts that last, which the caller reports later.
func (b *boundedRecorder) TryEventf(regarding, related runtime.Object, eventtype, reason, action, note string,
	args ...any) bool {
	return b.try(b.recording(regarding, related, eventtype, reason, action, note, args...))
}

// try records an event if there is budget for it now, and reports whether it did.
func (b *boundedRecorder) try(record func()) bool {
	ok := b.budget.mayRecordEvent()
	if ok {
		record()
	}
	return ok
}

// recording returns what records the event, without control characters: its note may repeat what users wrote, and
// kubectl prints it.
func (b *boundedRecorder) recording(regarding, related runtime.Object, eventtype, reason, action, note string,
	args ...any) func() {
	return func() {
		b.EventRecorder.Eventf(regarding, related, eventtype, reason, action, "%s", plain.Text(fmt.Sprintf(note, args...)))
	}
}

// Start implements manager.Runnable: it records the waiting warnings as the budget permits, until the context ends.
func (b *boundedRecorder) Start(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case record := <-b.late:
			if b.budget.waitForEvent(ctx) != nil {
				return nil
			}
			record()
		}
	}
}
