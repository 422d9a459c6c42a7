//go:build bench

// Package elastic measures how much sooner elastic jobs end than jobs of one size, in simulation, and how long a resize
// takes, on the embedded control plane.
package elastic

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/engine/elastic"
	"github.com/musterhq/muster/internal/sim"
	"github.com/musterhq/muster/test/bench/figure"
)

const (
	gpus  = 64
	seeds = 20
	// worst is the most that the p99 completion and the makespan may be, relative to the better rigid schedule.
	worst = 1.05
)

// usual is the default load: its run times at the maximum sizes, and the speed at other sizes.
var usual = sim.Mix{Jobs: 160, Within: 8 * time.Hour, Largest: 16, Sigma: 1.5, Exponent: 0.85}

// cluster is a cluster with a default queue and the default configuration.
var cluster = sim.Cluster{
	GPUs: gpus, Backfill: true, ResizeLoses: 30 * time.Second,
	Growth: elastic.Policy{GrowAfter: 30 * time.Second, ResizeCost: 30 * time.Second},
}

// reach holds, for each load, the factor by which the mean completion must improve.
var reach = []struct{ load, sooner float64 }{{1, 1.35}, {1.5, 1.7}}

// TestSizes compares three schedules of the same jobs on 64 GPUs: elastic, all rigid at their maxima, and all rigid at
// their minima. Rigid jobs start in order of arrival.
func TestSizes(t *testing.T) {
	for _, r := range reach {
		ratios := compare(t, cluster, usual, r.load, asDrawn)
		what := fmt.Sprintf("load %.1f, speed n^%.2f: ", r.load, usual.Exponent)
		figure.Reach(t, what+"mean completion, better by", times(ratios.mean), fmt.Sprintf("%.2f", r.sooner),
			median(ratios.mean) >= r.sooner)
		figure.Reach(t, what+"p99 completion, relative to the baseline", times(ratios.p99), fmt.Sprint(worst),
			median(ratios.p99) <= worst)
		figure.Reach(t, what+"makespan, relative to the baseline", times(ratios.makespan), fmt.Sprint(worst),
			median(ratios.makespan) <= worst)
		ratios.describe(what)
	}
}

// TestOtherSpeeds prints the same comparison for jobs whose speed grows more, or less, with their size.
func TestOtherSpeeds(t *testing.T) {
	for _, exponent := range []float64{1, 0.6} {
		for _, r := range reach {
			mix := usual
			mix.Exponent = exponent
			compare(t, cluster, mix, r.load, asDrawn).note(fmt.Sprintf("load %.1f, speed n^%g: ", r.load, exponent))
		}
	}
}

// TestOtherAssumptions prints the same comparison under other assumptions about resizes, pods, minima and the order of
// the queue.
func TestOtherAssumptions(t *testing.T) {
	free, slow, passing := cluster, cluster, cluster
	free.ResizeLoses, slow.PodsLeaveIn, passing.Strategy = 0, 10*time.Second, engine.BestEffort
	for _, r := range reach {
		at := fmt.Sprintf("load %.1f, ", r.load)
		compare(t, free, usual, r.load, asDrawn).note(at + "a resize loses nothing: ")
		compare(t, slow, usual, r.load, asDrawn).note(at + "pods take 10 s to terminate: ")
		compare(t, cluster, usual, r.load, roundedDown).note(at + "minima rounded down: ")
		compare(t, passing, usual, r.load, asDrawn).note(at + "a job that fits may pass: ")
	}
}

func asDrawn(jobs []sim.Job) []sim.Job { return jobs }

// roundedDown returns the jobs with minima of a quarter of the maxima rounded down, at least 1.
func roundedDown(jobs []sim.Job) []sim.Job {
	out := slices.Clone(jobs)
	for i := range out {
		out[i].Min = max(1, out[i].Max/4)
	}
	return out
}

// ratios holds, for each seed, how the elastic schedule compares to the baseline: the rigid schedule with the lower
// mean completion. Above 1, mean is better; p99 and makespan are worse.
type ratios struct {
	mean, p99, makespan []float64
	// resizes is the number of resizes a job; minimum the mean completion at the minima relative to that at the maxima;
	// tail the elastic p99 relative to the lower p99 of both rigid schedules.
	resizes, minimum, tail []float64
}

// compare runs the load with each seed as an elastic schedule and as both rigid ones.
func compare(t *testing.T, c sim.Cluster, mix sim.Mix, load float64, change func([]sim.Job) []sim.Job) (out ratios) {
	t.Helper()
	for seed := range uint64(seeds) {
		jobs := change(mix.Draw(seed, gpus, load))
		elastic, largest, smallest := c.Run(jobs), c.Run(sim.AtMaximum(jobs)), c.Run(sim.AtMinimum(jobs))
		for _, r := range []sim.Result{elastic, largest, smallest} {
			if !r.Ended() {
				t.Fatalf("seed %d: some jobs have not ended; completion times are %v", seed, r.Took)
			}
		}
		baseline := largest
		if smallest.Mean() < largest.Mean() {
			baseline = smallest
		}
		out.mean = append(out.mean, ratio(baseline.Mean(), elastic.Mean()))
		out.p99 = append(out.p99, ratio(elastic.Quantile(0.99), baseline.Quantile(0.99)))
		out.makespan = append(out.makespan, ratio(elastic.Makespan, baseline.Makespan))
		out.resizes = append(out.resizes, float64(elastic.Resizes)/float64(len(jobs)))
		out.tail = append(out.tail, ratio(elastic.Quantile(0.99), min(largest.Quantile(0.99), smallest.Quantile(0.99))))
		out.minimum = append(out.minimum, ratio(smallest.Mean(), largest.Mean()))
	}
	return out
}

// note prints the medians in one row.
func (r ratios) note(what string) {
	figure.Note(what+"mean, p99, makespan",
		fmt.Sprintf("%.2f, %.2f, %.2f", median(r.mean), median(r.p99), median(r.makespan)))
}

// describe prints the ratios that have no limit.
func (r ratios) describe(what string) {
	figure.Note(what+"mean completion, lowest and highest seed",
		fmt.Sprintf("%.2f, %.2f", slices.Min(r.mean), slices.Max(r.mean)))
	figure.Note(what+"p99, relative to the lower rigid one", times(r.tail))
	figure.Note(what+"resizes a job", fmt.Sprintf("%.1f", median(r.resizes)))
	figure.Note(what+"mean at minima, relative to maxima", times(r.minimum))
}

func ratio(a, b time.Duration) float64 { return float64(a) / float64(b) }

func times(of []float64) string { return fmt.Sprintf("%.2f", median(of)) }

func median(of []float64) float64 {
	s := slices.Sorted(slices.Values(of))
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}
