package sim_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/engine/durations"
	"github.com/musterhq/muster/internal/sim"
	"github.com/musterhq/muster/internal/sim/simtest"
)

// policies are the policies of a cluster of one queue that the plain simulation has too.
var policies = map[simtest.Policy]sim.Cluster{
	simtest.Strict:   {Strategy: engine.Strict},
	simtest.FirstFit: {},
	simtest.EASY:     {Backfill: true},
}

// TestEngineDecidesLikeThePlainSimulation: with rigid jobs that have limits, in one queue, each job waits as long.
func TestEngineDecidesLikeThePlainSimulation(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		policy := rapid.SampledFrom([]simtest.Policy{simtest.Strict, simtest.FirstFit, simtest.EASY}).Draw(t, "policy")
		cluster, jobs := policies[policy], drawnWithLimits(t)
		cluster.GPUs = 16
		got := cluster.Run(jobs)
		if diff := cmp.Diff(simtest.Waits(jobs, cluster.GPUs, policy), got.Waited); diff != "" || got.Delayed > 0 {
			for i, j := range jobs {
				t.Logf("%d: at %s, %d GPUs for %s of %s, %s", i, j.Arrives, j.Max, j.Work, j.Time.Limit, j.Time.Kind)
			}
			t.Errorf("%d promises delayed; waits (-plain +engine):\n%s", got.Delayed, diff)
		}
	})
}

// drawnWithLimits draws jobs of a few users, of which some arrive at the same time.
func drawnWithLimits(t *rapid.T) (jobs []sim.Job) {
	for range rapid.IntRange(1, 60).Draw(t, "jobs") {
		seconds := func(from, to int, what string) time.Duration {
			return time.Duration(rapid.IntRange(from, to).Draw(t, what)) * time.Second
		}
		size := rapid.Int32Range(1, 16).Draw(t, "size")
		work := seconds(1, 300, "work")
		jobs = append(jobs, sim.Job{Min: size, Max: size, Work: work, Arrives: seconds(0, 1500, "arrives"),
			Time: durations.Known{Limit: work + seconds(0, 300, "limit beyond the work"),
				Kind: rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "user")}})
	}
	slices.SortStableFunc(jobs, func(a, b sim.Job) int { return int(a.Arrives - b.Arrives) })
	for i := range jobs {
		jobs[i].Name = fmt.Sprintf("job-%07d", i)
	}
	return jobs
}
