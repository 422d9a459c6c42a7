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
type Seen struct {
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
type Verdict struct {
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
func Judge(seen Seen, said protocol.Request) Verdict {
	switch said.State {
	case protocol.Waiting:
		return wait(seen, said)
	case protocol.Running:
		if behind(seen, int32(said.Round-1)) {
			return Verdict{Over: fmt.Sprintf("attempt %d of the JobSet is over", said.Round-1)}
		}
	}
	return Verdict{}
}

func wait(seen Seen, said protocol.Request) Verdict {
	if seen.Attempt == nil || seen.Join != said.Join || behind(seen, *seen.Attempt) {
		next := int32(0)
		if seen.Current != nil {
			next = *seen.Current + 1
		}
		if seen.Attempt != nil && seen.Join == said.Join && next <= *seen.Attempt {
			return Verdict{} // the status is older than the annotation
		}
		return Verdict{Assign: &next}
	}
	if seen.Disabled || seen.Current != nil && *seen.Current == *seen.Attempt {
		return Verdict{Go: seen.Attempt}
	}
	return Verdict{}
}

func behind(seen Seen, attempt int32) bool {
	return seen.Previous != nil && attempt <= *seen.Previous
}
