package write

import corev1 "k8s.io/api/core/v1"

// Event is an event that is recorded on the job.
type Event struct {
	// Type is corev1.EventTypeNormal or corev1.EventTypeWarning.
	Type, Reason, Message string
	// WithStatus says that the event belongs to the status: it is held back if the status is.
	WithStatus bool
	// Standing says that the event reports a state, not an action: it is recorded once, and again only after the state
	// had ended.
	Standing bool
	// Key, unless empty, identifies a standing event in place of its message: a new message alone does not record it
	// again.
	Key string
	// Correctable says that the event is about a field that users can correct. withConsequence adds what follows from it.
	Correctable bool
	// Immutable is like Correctable, for a field that cannot be changed.
	Immutable bool
}

// Obstacle returns a standing Warning about something that keeps the job from making progress.
func Obstacle(reason, message string) Event {
	return Event{Type: corev1.EventTypeWarning, Reason: reason, Message: message, Standing: true}
}

// Warning returns an Event of type Warning.
func Warning(reason, message string) Event {
	return Event{Type: corev1.EventTypeWarning, Reason: reason, Message: message}
}

// Normal returns an Event of type Normal.
func Normal(reason, message string) Event {
	return Event{Type: corev1.EventTypeNormal, Reason: reason, Message: message}
}

// SameStanding reports whether e need not be recorded after the earlier event.
func (e Event) SameStanding(other Event) bool {
	if e.Key != "" {
		e.Message, other.Message = "", ""
	}
	return e == other
}
