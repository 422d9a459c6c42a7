package simnode

import (
	"fmt"
	"strconv"
	"time"
)

// Annotations by which a pod sets its behaviour on a simulated node.
const (
	// AnnotationDuration is how long each container runs, as a Go duration: 90s, 1h30m, 0s.
	AnnotationDuration = "muster.dev/sim-duration"
	// AnnotationExitCode is what each container exits with, from 0 to 255.
	AnnotationExitCode = "muster.dev/sim-exit-code"
)

// defaultDuration is used for pods without AnnotationDuration.
const defaultDuration = 5 * time.Second

// reasonInvalidSimulation is the status reason of a pod with invalid annotations.
const reasonInvalidSimulation = "InvalidSimulation"

// behavior is what the simulated process of each container does: it runs, and exits.
type behavior struct {
	duration time.Duration
	exitCode int32
}

// behaviorOf reads a pod's annotations. The error is for the pod's author.
func behaviorOf(annotations map[string]string) (behavior, error) {
	b := behavior{duration: defaultDuration}
	if text, given := annotations[AnnotationDuration]; given {
		duration, err := time.ParseDuration(text)
		if err != nil || duration < 0 {
			return b, fmt.Errorf("annotation %s: %q is not a duration; write one such as 90s or 1h30m",
				AnnotationDuration, text)
		}
		b.duration = duration
	}
	if text, given := annotations[AnnotationExitCode]; given {
		code, err := strconv.ParseUint(text, 10, 8)
		if err != nil {
			return b, fmt.Errorf("annotation %s: %q is not an exit code; write a number from 0 to 255",
				AnnotationExitCode, text)
		}
		b.exitCode = int32(code)
	}
	return b, nil
}
