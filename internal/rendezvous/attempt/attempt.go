// Package attempt decides what to answer the agents of a JobSet that restarts in place. Its rounds are the attempts
// that the JobSet's status counts: an annotation of each pod names the attempt that the pod is in, and two numbers in
// the status, written by the JobSet controller, say which pods may run and which must restart. All state is in API
// objects, so an operator restart loses nothing. The package is pure.
package attempt

import (
	"fmt"

	"github.com/musterhq/muster/internal/rendezvous/protocol"
)

// Observed is the state of a pod and its JobSet in the API.
type Observed struct {
	// Current is the attempt in which pods may run; pods in attempts up to Previous must restart. nil if not set yet.
	Current, Previous *int32
	// Disabled lets pods run without waiting for the others.
	Disabled bool
	// Attempt and Join come from the pod's annotations: the attempt that the pod is in, and the Join of the wait for
	// which it was assigned. Attempt is nil if there is none.
	Attempt *int32
	Join    string
}

// Decision is what to do about a request. The zero Decision is to answer nothing yet.
type Decision struct {
	// Assign is the attempt to assign to the pod; nil for no change.
	Assign *int32
	// Go is the attempt that the pod may run now; nil if it has to wait.
	Go *int32
	// Over tells the pod to stop; it holds the reason.
	Over string
}

// Number returns the round number of an attempt: attempts count from 0, rounds from 1.
func Number(attempt int32) int64 { return int64(attempt) + 1 }

// Decide returns what to do about the request of a pod's agent.
func Decide(observed Observed, request protocol.Request) Decision {
	switch request.State {
	case protocol.Waiting:
		return wait(observed, request)
	case protocol.Running:
		if behind(observed, int32(request.Round-1)) {
			return Decision{Over: fmt.Sprintf("attempt %d of the JobSet is over", request.Round-1)}
		}
	}
	return Decision{}
}

func wait(observed Observed, request protocol.Request) Decision {
	if observed.Attempt == nil || observed.Join != request.Join || behind(observed, *observed.Attempt) {
		next := int32(0)
		if observed.Current != nil {
			next = *observed.Current + 1
		}
		if observed.Attempt != nil && observed.Join == request.Join && next <= *observed.Attempt {
			return Decision{} // the status is older than the annotation
		}
		return Decision{Assign: &next}
	}
	if observed.Disabled || observed.Current != nil && *observed.Current == *observed.Attempt {
		return Decision{Go: observed.Attempt}
	}
	return Decision{}
}

func behind(observed Observed, attempt int32) bool {
	return observed.Previous != nil && attempt <= *observed.Previous
}
