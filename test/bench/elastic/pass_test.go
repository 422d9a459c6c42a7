//go:build bench

package elastic

import (
	"fmt"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/engine/elastic"
	"github.com/musterhq/muster/internal/sim"
	"github.com/musterhq/muster/test/bench/figure"
)

const (
	// passJobs jobs run on passGPUs GPUs.
	passJobs, passGPUs = 1000, 10_000
	passMost           = 10 * time.Millisecond
	// passRounds is how often each case is played; the best round counts, because other load only makes passes longer.
	passRounds = 3
)

// TestPass measures the longest engine pass while 1,000 elastic jobs arrive, grow, shrink or are preempted for a large
// job, resume and end.
func TestPass(t *testing.T) {
	for _, when := range []struct {
		what    string
		largest sim.Job
	}{
		{"with a rigid job of 3,000", sim.Job{Name: "large", Min: 3000, Max: 3000, Priority: 2}},
		{"with an elastic one of 3,000 to 6,000", sim.Job{Name: "large", Min: 3000, Max: 6000, Priority: 1}},
		{"with a rigid one of 9,000", sim.Job{Name: "large", Min: 9000, Max: 9000, Priority: 3}},
	} {
		best, passes := time.Hour, 0
		for range passRounds {
			longest := time.Duration(0)
			passes = 0
			large := when.largest
			large.Arrives, large.Exponent, large.Work = 2*time.Hour, 0.85, 900*time.Hour
			passCluster(func(pass func()) {
				began := time.Now()
				pass()
				longest = max(longest, time.Since(began))
				passes++
			}).Run(append(manyJobs(), large))
			best = min(best, longest)
		}
		figure.Reach(t, fmt.Sprintf("longest of %d passes, %s", passes, when.what), milliseconds(best),
			milliseconds(passMost), best < passMost)
	}
}

// passCluster returns a cluster that calls around in place of each engine pass; around must call pass.
func passCluster(around func(pass func())) sim.Cluster {
	return sim.Cluster{GPUs: passGPUs, Backfill: true, Around: around,
		Growth: elastic.Policy{GrowAfter: 30 * time.Second, ResizeCost: 30 * time.Second}}
}

// manyJobs returns jobs of three priorities that arrive within an hour and have work for two to five hours at their
// maximum size.
func manyJobs() []sim.Job {
	jobs := make([]sim.Job, passJobs)
	for i := range jobs {
		largest := 4 + 2*int32(i%13)
		jobs[i] = sim.Job{Name: fmt.Sprintf("j%04d", i), Arrives: time.Duration(i) * time.Hour / passJobs,
			Min: 1 + int32(i%4), Max: largest,
			Priority: int32(i % 3), Exponent: 0.85, Work: time.Duration(largest) * time.Hour * time.Duration(2+i%4)}
	}
	return jobs
}

func milliseconds(d time.Duration) string {
	return fmt.Sprintf("%.1f ms", float64(d.Microseconds())/1000)
}
