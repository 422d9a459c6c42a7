package sim

import (
	"math"
	"slices"
	"time"
)

// Result is the outcome of a simulation.
type Result struct {
	// Took is the time from the arrival of each job to its end, in the order of the jobs; negative for a job that did
	// not end.
	Took []time.Duration
	// Waited is the time from the arrival of each job to its first start; negative for a job that did not start.
	Waited []time.Duration
	// Promised counts the jobs whose start was promised, Delayed those of them that started later than promised: by more
	// than pods take to terminate.
	Promised, Delayed int
	// Promises are the promised starts of jobs that started, in order of these starts.
	Promises []Promise
	// Makespan is the time at which the last job ended.
	Makespan time.Duration
	// Resizes is the number of resizes of running jobs.
	Resizes int
	// Steps are all changes of what jobs hold, in order.
	Steps []Step
}

// Promise is a promised start: at the latest at this time.
type Promise struct {
	Job         int
	At, Started time.Duration
}

// Step is a change of what a job holds.
type Step struct {
	At  time.Duration
	Job int
	// Replicas is the number of running replicas; Held is the number of replicas' worth of resources that other jobs
	// cannot use, including those of terminating pods.
	Replicas, Held int32
}

// Ended reports whether all jobs have ended.
func (r Result) Ended() bool {
	return !slices.ContainsFunc(r.Took, func(d time.Duration) bool { return d < 0 })
}

// Mean returns the mean of Took.
func (r Result) Mean() time.Duration {
	sum := 0.0
	for _, d := range r.Took {
		sum += float64(d)
	}
	return time.Duration(sum / float64(max(1, len(r.Took))))
}

// Quantile returns the time within which the given share of the jobs ended, by nearest rank.
func (r Result) Quantile(share float64) time.Duration {
	return quantile(slices.Sorted(slices.Values(r.Took)), share)
}

// quantile returns the nearest rank of sorted times, zero if there are none.
func quantile(sorted []time.Duration, share float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	rank := int(math.Ceil(share * float64(len(sorted))))
	return sorted[min(max(rank, 1), len(sorted))-1]
}
