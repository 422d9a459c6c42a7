package elastic

import (
	"cmp"
	"math"
	"time"

	"github.com/musterhq/muster/internal/engine/order"
)

// DefaultExponent is that of the speed of jobs that say nothing else.
const DefaultExponent = 0.85

// Job is one that runs, and may at any size from Min to Max.
type Job struct {
	Key order.Key
	// Size is how many replicas it has or was told to have.
	Min, Max, Size int32
	Priority       int32
	QueuedAt       time.Time
	// RunsSince is when it was admitted, ResizedAt when its size changed last, zero for
	// never.
	RunsSince, ResizedAt time.Time
	// Exponent is that of its speed: n replicas do n to the power of it of the work of one.
	Exponent float64
	// Speeds are those of the exponent for each size, as far as they are known.
	Speeds []float64
}

// speed is what so many replicas do of the work of one.
func (j *Job) speed(size int32) float64 {
	if int(size) < len(j.Speeds) {
		return j.Speeds[size]
	}
	return math.Pow(float64(size), j.Exponent)
}

// Speeds are those by exponent, each computed once.
type Speeds map[float64][]float64

// remembered bounds for which sizes speeds are kept.
const remembered = 1 << 14

// Of are the speeds of the exponent for sizes up to the largest.
func (s Speeds) Of(exponent float64, largest int32) []float64 {
	known := s[exponent]
	if len(known) > int(min(largest, remembered)) {
		return known
	}
	for n := len(known); n <= int(min(largest, remembered)); n++ {
		known = append(known, math.Pow(float64(n), exponent))
	}
	s[exponent] = known
	return known
}

// compare orders jobs of one priority as they stand in their queue.
func (j *Job) compare(other *Job) int {
	return cmp.Or(j.QueuedAt.Compare(other.QueuedAt), order.CompareKeys(j.Key, other.Key))
}

// Equal reports whether both are the same job at the same size.
func (j *Job) Equal(other *Job) bool {
	return j.Key == other.Key && j.Min == other.Min && j.Max == other.Max && j.Size == other.Size && j.Priority == other.Priority && j.Exponent == other.Exponent &&
		j.QueuedAt.Equal(other.QueuedAt) && j.RunsSince.Equal(other.RunsSince) && j.ResizedAt.Equal(other.ResizedAt)
}

// Policy is when growth is worth its while.
type Policy struct {
	// GrowAfter is how long a job that began or was resized does not grow.
	GrowAfter time.Duration
	// ResizeCost is the work that a resize loses, as time at the new size.
	ResizeCost time.Duration
}

// SizesLast is for how long a size is expected to last. In simulation (test/bench/elastic)
// half of them last six minutes or more where there is more work than room.
const SizesLast = 10 * time.Minute

// price is the share of the work of a size that a resize loses.
func (p Policy) price() float64 { return p.ResizeCost.Seconds() / SizesLast.Seconds() }

// GrowsAt is from when on the job may grow to so many replicas. It must have rested since it
// was last resized, and what it gains must be worth the cost: who has run for a while is
// expected to run as long again, so by then the larger size must have done more.
func (p Policy) GrowsAt(j *Job, to int32) time.Time {
	rested := j.RunsSince
	if j.ResizedAt.After(rested) {
		rested = j.ResizedAt
	}
	rested = rested.Add(p.GrowAfter)
	if p.ResizeCost <= 0 {
		return rested
	}
	share := 1 - j.speed(j.Size)/j.speed(to) // of the work that the larger size does
	if share <= 0 {
		return j.RunsSince.Add(longest) // more replicas do no more
	}
	worth := j.RunsSince.Add(time.Duration(min(float64(p.ResizeCost)/share, float64(longest))).Round(time.Millisecond))
	if worth.After(rested) {
		return worth
	}
	return rested
}

// longest bounds how long growth waits to be worth its while.
const longest = 365 * 24 * time.Hour
