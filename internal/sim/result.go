package sim

import (
	"math"
	"slices"
	"time"
)

// Result is what became of the jobs.
type Result struct {
	// Took is from the arrival of each job to its end, in the order in which they were given.
	// It is below zero for one that never ended.
	Took []time.Duration
	// Makespan is when the last one ended, from the beginning of time.
	Makespan time.Duration
	// Resizes is how often a job that ran got another size.
	Resizes int
	// Steps are all changes of what jobs hold, as they came about.
	Steps []Step
}

// Step is a change of what a job holds.
type Step struct {
	At  time.Duration
	Job int
	// Replicas run; Held are the GPUs that nobody else can have, those of pods that are to go
	// included.
	Replicas, Held int32
}

// Ended reports whether all jobs have.
func (r Result) Ended() bool {
	return !slices.ContainsFunc(r.Took, func(d time.Duration) bool { return d < 0 })
}

// Mean is that of the times which jobs took.
func (r Result) Mean() time.Duration {
	sum := 0.0
	for _, d := range r.Took {
		sum += float64(d)
	}
	return time.Duration(sum / float64(max(1, len(r.Took))))
}

// Quantile is the time within which this share of the jobs ended, by the nearest rank.
func (r Result) Quantile(share float64) time.Duration {
	if len(r.Took) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(r.Took))
	rank := int(math.Ceil(share * float64(len(sorted))))
	return sorted[min(max(rank, 1), len(sorted))-1]
}
