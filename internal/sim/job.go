package sim

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"
)

// Job is one that needs GPUs for some work, one for each replica.
type Job struct {
	// Name tells it from the others; of jobs that arrive in the same second it says who
	// came first.
	Name    string
	Arrives time.Duration
	// Min and Max are its fewest and most replicas; a rigid job has the same twice.
	Min, Max int32
	// Work is how long one replica would take for it, Exponent that of the speed: n replicas
	// do n to the power of it of the work of one.
	Work     time.Duration
	Exponent float64
	Priority int32
}

// speed is what so many replicas do of the work of one.
func (j *Job) speed(replicas int32) float64 { return math.Pow(float64(replicas), j.Exponent) }

// AtMaximum are the jobs with their largest size as their only one.
func AtMaximum(jobs []Job) []Job { return rigid(jobs, func(j Job) int32 { return j.Max }) }

// AtMinimum are the jobs with their smallest size as their only one.
func AtMinimum(jobs []Job) []Job { return rigid(jobs, func(j Job) int32 { return j.Min }) }

func rigid(jobs []Job, size func(Job) int32) []Job {
	out := slices.Clone(jobs)
	for i := range out {
		out[i].Min, out[i].Max = size(out[i]), size(out[i])
	}
	return out
}

// Mix is what jobs are like that come at random.
type Mix struct {
	// Jobs is how many come, at any time Within with the same probability.
	Jobs   int
	Within time.Duration
	// Largest bounds their maxima, which are from 1 on; minima are a quarter of them, rounded
	// up.
	Largest int32
	// Sigma is that of the logarithm of how long they run at their maxima.
	Sigma    float64
	Exponent float64
}

// Draw makes the jobs of a seed, in the order in which they arrive. All together they would
// keep so many GPUs busy for load times as long as they come in, each at its maximum.
func (m Mix) Draw(seed uint64, gpus int64, load float64) []Job {
	random := rand.New(rand.NewPCG(seed, 0))
	arrivals := make([]time.Duration, m.Jobs) // those of a Poisson process, given how many there are
	for i := range arrivals {
		arrivals[i] = time.Duration(random.Int64N(int64(m.Within)))
	}
	slices.Sort(arrivals)
	lasts, jobs, sum := make([]float64, m.Jobs), make([]Job, m.Jobs), 0.0
	for i := range jobs {
		most := 1 + random.Int32N(m.Largest)
		jobs[i] = Job{Name: name(i), Arrives: arrivals[i], Min: (most + 3) / 4, Max: most, Exponent: m.Exponent}
		lasts[i] = math.Exp(m.Sigma * random.NormFloat64())
		sum += lasts[i] * float64(most)
	}
	scale := load * float64(gpus) * float64(m.Within) / sum
	for i := range jobs {
		jobs[i].Work = time.Duration(lasts[i] * scale * jobs[i].speed(jobs[i].Max))
	}
	return jobs
}

// name is of one length for all, so that names are in the order of arrivals.
func name(i int) string { return fmt.Sprintf("job-%07d", i) }
