package sim

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/engine/durations"
)

// Job is a job with some work to do.
type Job struct {
	// Name identifies the job, and orders jobs that arrive in the same second.
	Name    string
	Arrives time.Duration
	// Min and Max are its fewest and most replicas, equal for a rigid job.
	Min, Max int32
	// Work is how long one replica would take for it. Exponent is the exponent of its speed: n replicas do n to the
	// power of Exponent times the work of one.
	Work     time.Duration
	Exponent float64
	// Speed, if not nil, has the speeds at 1, 2, 3 and more replicas relative to one, in place of those by Exponent, which
	// is then what the engine expects of it. It has Max entries.
	Speed    []float64
	Priority int32
	// User is whose job it is, in a log that says so.
	User string
	// Namespace and Queue name the LocalQueue of the job; both are "" for the only one of a cluster without Objects.
	Namespace, Queue string
	// Pod says what a replica asks for, and how its pods are placed; nil asks for one GPU. Its counts are set.
	Pod *engine.PodSet
	// Within is the level of a topology of which one domain must hold all pods, "" if they may be anywhere.
	Within string
	// Time is what is known of how long the job runs. A job with a limit is stopped once it has run that long.
	Time durations.Known
}

// perPod returns what a replica asks for.
func (j *Job) perPod() map[string]int64 {
	if j.Pod == nil {
		return map[string]int64{GPU: 1}
	}
	return j.Pod.PerPod
}

// speed returns the speed of this number of replicas, relative to one.
func (j *Job) speed(replicas int32) float64 {
	if j.Speed != nil {
		return j.Speed[replicas-1]
	}
	return math.Pow(float64(replicas), j.Exponent)
}

// AtMaximum returns the jobs as rigid ones of their largest size.
func AtMaximum(jobs []Job) []Job { return rigid(jobs, func(j Job) int32 { return j.Max }) }

// AtMinimum returns the jobs as rigid ones of their smallest size.
func AtMinimum(jobs []Job) []Job { return rigid(jobs, func(j Job) int32 { return j.Min }) }

func rigid(jobs []Job, size func(Job) int32) []Job {
	out := slices.Clone(jobs)
	for i := range out {
		out[i].Min, out[i].Max = size(out[i]), size(out[i])
	}
	return out
}

// Mix is the distribution of random jobs.
type Mix struct {
	// Jobs is their number; they arrive uniformly distributed Within this time.
	Jobs   int
	Within time.Duration
	// Largest bounds their maximum sizes, which are uniformly distributed from 1 on; minimum sizes are a quarter of
	// these, rounded up.
	Largest int32
	// Sigma is the standard deviation of the logarithm of their run times at maximum size.
	Sigma    float64
	Exponent float64
}

// Draw returns the jobs of a seed in the order of arrival. At their maximum sizes they would together keep load times
// the GPUs busy for the time Within.
func (m Mix) Draw(seed uint64, gpus int64, load float64) []Job {
	random := rand.New(rand.NewPCG(seed, 0))
	arrivals := make([]time.Duration, m.Jobs) // as in a Poisson process with this number of arrivals
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

// name returns a name of fixed length, so that names sort by arrival.
func name(i int) string { return fmt.Sprintf("job-%07d", i) }
