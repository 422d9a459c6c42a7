package write

import (
	"cmp"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/musterhq/muster/internal/workload"
)

const (
	// eventMessageBytes is the API's limit for the note of an event.
	eventMessageBytes = 1024
	// eventAction is the action of every event recorded here.
	eventAction = "Reconciling"
)

// record records an event. The recorder may drop it under load.
func (ex *Executor) record(job client.Object, e Event) { ex.emit(job, e, ex.recorder.Eventf) }

// budgetedRecorder is an event recorder that reports whether it recorded an event. An event that it had no capacity for
// is not counted as dropped, because it is tried again later.
type budgetedRecorder interface {
	TryEventf(regarding, related runtime.Object, eventtype, reason, action, note string, args ...any) bool
}

// RecordStanding records a standing event, and reports whether the recorder had capacity for it. If not, the caller
// tries again later.
func (ex *Executor) RecordStanding(job client.Object, e Event) (recorded bool) {
	r, ok := ex.recorder.(budgetedRecorder)
	if !ok {
		ex.record(job, e)
		return true
	}
	ex.emit(job, e, func(regarding, related runtime.Object, eventtype, reason, action, note string, args ...any) {
		recorded = r.TryEventf(regarding, related, eventtype, reason, action, note, args...)
	})
	return recorded
}

// emit passes an event on. Its message is never used as a format, has no control characters, and is cut to the
// API's limit.
func (ex *Executor) emit(job client.Object, e Event,
	to func(regarding, related runtime.Object, eventtype, reason, action, note string, args ...any)) {
	to(job, nil, cmp.Or(e.Type, corev1.EventTypeNormal), e.Reason, eventAction, "%s",
		workload.Cut(e.Message, eventMessageBytes))
}
