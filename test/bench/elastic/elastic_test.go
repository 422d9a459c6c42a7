//go:build bench

// Package elastic measures, in simulation, how much sooner jobs end that can run at several
// sizes than jobs of one size, and, on the embedded control plane, how long a resize takes.
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
	// worst is how much longer than by the better of the rigid ones the slowest jobs, and all
	// together, may take.
	worst = 1.05
)

// usual is how long jobs run at their maxima, and how fast at other sizes.
var usual = sim.Mix{Jobs: 160, Within: 8 * time.Hour, Largest: 16, Sigma: 1.5, Exponent: 0.85}

// cluster is a default queue with the configuration that nobody changed.
var cluster = sim.Cluster{
	GPUs: gpus, Strategy: engine.ByResource, ResizeLoses: 30 * time.Second,
	Growth: elastic.Policy{GrowAfter: 30 * time.Second, ResizeCost: 30 * time.Second},
}

// reach is by which load how much sooner jobs must end on average.
var reach = []struct{ load, sooner float64 }{{1, 1.35}, {1.5, 1.7}}

// TestSizes: the same jobs come to 64 GPUs with sizes that change, each at its maximum only,
// and each at its minimum only, the latter in order of arrival.
func TestSizes(t *testing.T) {
	for _, r := range reach {
		ratios := compare(t, cluster, usual, r.load, asDrawn)
		what := fmt.Sprintf("load %.1f, speed n^%.2f: ", r.load, usual.Exponent)
		figure.Reach(t, what+"mean completion, better by", times(ratios.mean), fmt.Sprintf("%.2f", r.sooner), median(ratios.mean) >= r.sooner)
		figure.Reach(t, what+"p99 completion, of theirs", times(ratios.p99), fmt.Sprint(worst), median(ratios.p99) <= worst)
		figure.Reach(t, what+"makespan, of theirs", times(ratios.makespan), fmt.Sprint(worst), median(ratios.makespan) <= worst)
		ratios.describe(what)
	}
}

// TestOtherSpeeds: the same of jobs that gain more from their size, or less.
func TestOtherSpeeds(t *testing.T) {
	for _, exponent := range []float64{1, 0.6} {
		for _, r := range reach {
			mix := usual
			mix.Exponent = exponent
			compare(t, cluster, mix, r.load, asDrawn).note(fmt.Sprintf("load %.1f, speed n^%g: ", r.load, exponent))
		}
	}
}

// TestOtherAssumptions: what the figures owe to what was left open.
func TestOtherAssumptions(t *testing.T) {
	free, leaving, passing := cluster, cluster, cluster
	free.ResizeLoses, leaving.PodsLeaveIn, passing.Strategy = 0, 10*time.Second, engine.BestEffort
	for _, r := range reach {
		at := fmt.Sprintf("load %.1f, ", r.load)
		compare(t, free, usual, r.load, asDrawn).note(at + "resizes cost nothing: ")
		compare(t, leaving, usual, r.load, asDrawn).note(at + "pods take 10 s to go: ")
		compare(t, cluster, usual, r.load, roundedDown).note(at + "minima rounded down: ")
		compare(t, passing, usual, r.load, asDrawn).note(at + "who fits may pass: ")
	}
}

func asDrawn(jobs []sim.Job) []sim.Job { return jobs }

// roundedDown has a quarter of the maxima be rounded the other way.
func roundedDown(jobs []sim.Job) []sim.Job {
	out := slices.Clone(jobs)
	for i := range out {
		out[i].Min = max(1, out[i].Max/4)
	}
	return out
}

// ratios are elastic jobs beside the better of both rigid ones, one of each seed.
type ratios struct {
	mean, p99, makespan []float64
	// resizes are how many there were for each job, minimum is the mean of those at their
	// minima beside those at their maxima, tail is our p99 beside the lower one of theirs.
	resizes, minimum, tail []float64
}

func compare(t *testing.T, c sim.Cluster, mix sim.Mix, load float64, change func([]sim.Job) []sim.Job) (out ratios) {
	t.Helper()
	for seed := range uint64(seeds) {
		jobs := change(mix.Draw(seed, gpus, load))
		ours, largest, smallest := c.Run(jobs), c.Run(sim.AtMaximum(jobs)), c.Run(sim.AtMinimum(jobs))
		for _, r := range []sim.Result{ours, largest, smallest} {
			if !r.Ended() {
				t.Fatalf("seed %d: not all jobs have ended: %v", seed, r.Took)
			}
		}
		theirs := largest
		if smallest.Mean() < largest.Mean() {
			theirs = smallest
		}
		out.mean = append(out.mean, ratio(theirs.Mean(), ours.Mean()))
		out.p99 = append(out.p99, ratio(ours.Quantile(0.99), theirs.Quantile(0.99)))
		out.makespan = append(out.makespan, ratio(ours.Makespan, theirs.Makespan))
		out.resizes = append(out.resizes, float64(ours.Resizes)/float64(len(jobs)))
		out.tail = append(out.tail, ratio(ours.Quantile(0.99), min(largest.Quantile(0.99), smallest.Quantile(0.99))))
		out.minimum = append(out.minimum, ratio(smallest.Mean(), largest.Mean()))
	}
	return out
}

func (r ratios) note(what string) {
	figure.Note(what+"mean, p99, makespan", fmt.Sprintf("%.2f, %.2f, %.2f", median(r.mean), median(r.p99), median(r.makespan)))
}

func (r ratios) describe(what string) {
	figure.Note(what+"of the seeds, mean from, to", fmt.Sprintf("%.2f, %.2f", slices.Min(r.mean), slices.Max(r.mean)))
	figure.Note(what+"p99, of the lower of both", times(r.tail))
	figure.Note(what+"resizes a job", fmt.Sprintf("%.1f", median(r.resizes)))
	figure.Note(what+"mean at minima, of at maxima", times(r.minimum))
}

func ratio(a, b time.Duration) float64 { return float64(a) / float64(b) }

func times(of []float64) string { return fmt.Sprintf("%.2f", median(of)) }

func median(of []float64) float64 {
	s := slices.Sorted(slices.Values(of))
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}
