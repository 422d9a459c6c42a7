package sim

import (
	"math"
	"time"
)

// progress is how far a job has come.
type progress struct {
	job *Job
	// done is the work done until since, in nanoseconds of one replica. Since then it has run with this number of
	// replicas, none while it does not run.
	done     float64
	since    time.Duration
	replicas int32
	// stalledUntil is the time until which it makes no progress after a resize.
	stalledUntil time.Duration
}

// advance adds the work done until now.
func (p *progress) advance(now time.Duration) {
	if from := max(p.since, p.stalledUntil); p.replicas > 0 && now > from {
		p.done += float64(now-from) * p.job.speed(p.replicas)
	}
	p.since = now
}

// resize changes the number of replicas, at a loss of some time in addition to what remains of earlier losses.
func (p *progress) resize(now time.Duration, replicas int32, loses time.Duration) {
	p.advance(now)
	p.replicas, p.stalledUntil = replicas, max(p.stalledUntil, now)+loses
}

// ends returns the time of completion at the present size.
func (p *progress) ends() time.Duration {
	left := max(0, float64(p.job.Work)-p.done)
	return max(p.since, p.stalledUntil) + time.Duration(math.Ceil(left/p.job.speed(p.replicas)))
}
