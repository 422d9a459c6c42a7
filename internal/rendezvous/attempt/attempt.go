// Package attempt decides what to tell the agents of a JobSet that restarts in place. Its
// rounds are the attempts that the status of the JobSet counts: each pod says in an
// annotation which one it is in, and the controller of JobSets lets pods run, and has
// them restart, by two numbers. All of it is in API objects, so nothing is lost with an
// operator. It is pure.
package attempt

import (
	"fmt"

	"github.com/musterhq/muster/internal/rendezvous/protocol"
)

// Seen is what the API says of a pod and its JobSet.
type Observed struct {
	// Current is the attempt in which pods may run, Previous that up to which they must
	// restart; nil for none yet.
	Current, Previous *int32
	// Disabled lets pods run without waiting for the others.
	Disabled bool
	// Attempt and Join are the annotations of the pod: the attempt that it is in, and the
	// wait of its agent that this attempt was given to. Attempt is nil if there is none.
	Attempt *int32
	Join    string
}

// Verdict is what follows.
type Decision struct {
	// Assign is the attempt that the pod is to be in from now on, nil for no change.
	Assign *int32
	// Go lets the pod run in that attempt.
	Go *int32
	// Over has it stop, and says why.
	Over string
}

// Number is the number of the round that an attempt is; attempts count from 0, rounds from 1.
func Number(attempt int32) int64 { return int64(attempt) + 1 }

// Judge says what follows from what the agent in a pod says.
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
