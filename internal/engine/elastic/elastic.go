package elastic

import (
	"cmp"
	"math"
	"time"

	"github.com/musterhq/muster/internal/engine/order"
)

// DefaultExponent is the default exponent of a job's speed.
const DefaultExponent = 0.85

// Job is a running job that may have any size from Min to Max.
type Job struct {
	Key order.Key
	// Size is the number of replicas that it has or was told to have.
	Min, Max, Size int32
	Priority       int32
	QueuedAt       time.Time
	// RunsSince is when it was admitted, ResizedAt when its size last changed, zero if it never did.
	RunsSince, ResizedAt time.Time
	// Exponent is the exponent of its speed: n replicas do n to the power of Exponent times the work of one.
	Exponent float64
	// Speeds caches the speed of each size, as far as it is known.
	Speeds []float64
}

// speed returns the speed of a size, relative to one replica.
func (j *Job) speed(size int32) float64 {
	if int(size) < len(j.Speeds) {
		return j.Speeds[size]
	}
	return math.Pow(float64(size), j.Exponent)
}

// MaxReplicas bounds the sizes of jobs: growth and shrinking are decided replica by replica.
const MaxReplicas = 10_000

// Speeds caches the speeds of each exponent. A speed is the same whether or not it is cached.
type Speeds map[float64][]float64

// maxExponents bounds how many exponents are cached, for users choose them. With two decimals and at most 2, as the
// engine is given them, there are no more.
const maxExponents = 200

// Of returns the speeds of the exponent for sizes up to the largest, as far as the cache may have them.
func (s Speeds) Of(exponent float64, largest int32) []float64 {
	known, cached := s[exponent]
	sizes := int(min(largest, MaxReplicas)) + 1
	if len(known) >= sizes || !cached && len(s) >= maxExponents {
		return known
	}
	for n := len(known); n < sizes; n++ {
		known = append(known, math.Pow(float64(n), exponent))
	}
	s[exponent] = known
	return known
}

// compare orders jobs of one priority as in their queue.
func (j *Job) compare(other *Job) int {
	return cmp.Or(j.QueuedAt.Compare(other.QueuedAt), order.CompareKeys(j.Key, other.Key))
}

// Equal reports whether both are the same job in the same state. Speeds are not compared.
func (j *Job) Equal(other *Job) bool {
	return j.Key == other.Key && j.Min == other.Min && j.Max == other.Max && j.Size == other.Size &&
		j.Priority == other.Priority && j.Exponent == other.Exponent &&
		j.QueuedAt.Equal(other.QueuedAt) && j.RunsSince.Equal(other.RunsSince) && j.ResizedAt.Equal(other.ResizedAt)
}

// Policy says when growth is worthwhile.
type Policy struct {
	// GrowAfter is how long a job does not grow after it started or was resized.
	GrowAfter time.Duration
	// ResizeCost is the work lost by a resize, as time at the new size.
	ResizeCost time.Duration
}

// SizesLast is how long a size is expected to last.
const SizesLast = 10 * time.Minute

// price returns the cost of a resize as a fraction of the work that is done at one size.
func (p Policy) price() float64 { return p.ResizeCost.Seconds() / SizesLast.Seconds() }

// GrowsAt returns when the job may grow to this size. GrowAfter must have passed since its last resize, and the gain
// must be worth the cost: a job is expected to run as long again as it has run, and the larger size must do more work
// in that time.
func (p Policy) GrowsAt(j *Job, to int32) time.Time {
	rested := j.RunsSince
	if j.ResizedAt.After(rested) {
		rested = j.ResizedAt
	}
	rested = rested.Add(p.GrowAfter)
	if p.ResizeCost <= 0 {
		return rested
	}
	share := 1 - j.speed(j.Size)/j.speed(to) // the gain, as a fraction of the work done at the larger size
	if share <= 0 {
		return j.RunsSince.Add(longest) // more replicas are no faster
	}
	worth := j.RunsSince.Add(time.Duration(min(float64(p.ResizeCost)/share, float64(longest))).Round(time.Millisecond))
	if worth.After(rested) {
		return worth
	}
	return rested
}

// longest bounds how long growth may take to be worthwhile.
const longest = 365 * 24 * time.Hour
