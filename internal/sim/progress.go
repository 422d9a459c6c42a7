package sim

import (
	"math"
	"time"
)

// progress is how far a job has come.
type progress struct {
	job *Job
	// done is the work done until since, in nanoseconds of one replica; from then on it runs
	// with so many replicas, none while it does not run.
	done     float64
	since    time.Duration
	replicas int32
	// stands is until when it does nothing since it was resized.
	stands time.Duration
}

// follow does the work of the time until now.
func (p *progress) follow(now time.Duration) {
	if from := max(p.since, p.stands); p.replicas > 0 && now > from {
		p.done += float64(now-from) * p.job.speed(p.replicas)
	}
	p.since = now
}

// resize has it go on with so many replicas after it has lost some time, besides what it
// loses already.
func (p *progress) resize(now time.Duration, replicas int32, loses time.Duration) {
	p.follow(now)
	p.replicas, p.stands = replicas, max(p.stands, now)+loses
}

// ends is when all is done if nothing happens before.
func (p *progress) ends() time.Duration {
	left := max(0, float64(p.job.Work)-p.done)
	return max(p.since, p.stands) + time.Duration(math.Ceil(left/p.job.speed(p.replicas)))
}
