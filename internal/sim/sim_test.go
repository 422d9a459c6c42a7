package sim

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/engine/elastic"
)

// of returns a job of linear speed; times are in seconds.
func of(name string, arrives int, fewest, most int32, work int) Job {
	return Job{Name: name, Arrives: seconds(arrives), Min: fewest, Max: most, Work: seconds(work), Exponent: 1}
}

func seconds(n int) time.Duration { return time.Duration(n) * time.Second }

// took returns how long each job took, in seconds.
func took(r Result) []float64 {
	var out []float64
	for _, d := range r.Took {
		out = append(out, d.Seconds())
	}
	return out
}

// steps formats the steps of a job, one line each.
func steps(r Result, job int) []string {
	var out []string
	for _, s := range r.Steps {
		if s.Job == job {
			out = append(out, fmt.Sprintf("%.0f s: %d run, %d held", s.At.Seconds(), s.Replicas, s.Held))
		}
	}
	return out
}

// TestCasesWorkedOutByHand: the cluster has 4 GPUs, and each resize loses 10 s.
func TestCasesWorkedOutByHand(t *testing.T) {
	four := Cluster{GPUs: 4, ResizeLoses: seconds(10)}
	leaving := four
	leaving.PodsLeaveIn = seconds(5)
	resting := four
	resting.Growth = elastic.Policy{GrowAfter: seconds(60)}
	strict := four
	strict.Strategy = engine.Strict
	urgent := of("urgent", 20, 4, 4, 40)
	urgent.Priority = 1
	for name, tc := range map[string]struct {
		cluster  Cluster
		jobs     []Job
		want     []float64
		makespan int
		resizes  int
		first    []string // expected steps of the first job
	}{
		"one job": {
			cluster: four, jobs: []Job{of("a", 3, 1, 4, 400)},
			want: []float64{100}, makespan: 103,
			first: []string{"3 s: 4 run, 4 held", "103 s: 0 run, 0 held"},
		},
		// a has done 200 at 50 s and pauses until 60 s. It has done 280 at 100 s, when b ends, pauses until 110 s, and
		// does the last 120 at four per second.
		"a job shrinks for another and grows when that ends": {
			cluster: four, jobs: []Job{of("a", 0, 1, 4, 400), of("b", 50, 2, 2, 100)},
			want: []float64{140, 50}, makespan: 140, resizes: 2,
			first: []string{"0 s: 4 run, 4 held", "50 s: 2 run, 4 held", "50 s: 2 run, 2 held", "100 s: 4 run, 4 held",
				"140 s: 0 run, 0 held"},
		},
		// b starts 5 s later and ends at 105 s. By then a has done 290; it pauses until 115 s and takes 27.5 s for the
		// rest.
		"surplus pods keep their GPUs until they are gone": {
			cluster: leaving, jobs: []Job{of("a", 0, 1, 4, 400), of("b", 50, 2, 2, 100)},
			want: []float64{142.5, 55}, makespan: 142, resizes: 2,
			first: []string{"0 s: 4 run, 4 held", "50 s: 2 run, 4 held", "55 s: 2 run, 2 held", "105 s: 4 run, 4 held",
				"142 s: 0 run, 0 held"},
		},
		// b ends at 100 s, but a grows only at 110 s: it has done 300 by then, and pauses until 120 s.
		"growth is delayed": {
			cluster: resting, jobs: []Job{of("a", 0, 1, 4, 400), of("b", 50, 2, 2, 100)},
			want: []float64{145, 50}, makespan: 145, resizes: 2,
			first: []string{"0 s: 4 run, 4 held", "50 s: 2 run, 4 held", "50 s: 2 run, 2 held", "110 s: 4 run, 4 held",
				"145 s: 0 run, 0 held"},
		},
		// a has done 80 at 20 s, waits until 30 s, and pauses until 40 s.
		"a job of higher priority stops another, which continues later": {
			cluster: four, jobs: []Job{of("a", 0, 1, 4, 120), urgent},
			want: []float64{50, 10}, makespan: 50,
			first: []string{"0 s: 4 run, 4 held", "20 s: 0 run, 4 held", "20 s: 0 run, 0 held", "30 s: 4 run, 4 held",
				"50 s: 0 run, 0 held"},
		},
		"rigid jobs in order of arrival": {
			cluster: strict, jobs: AtMaximum([]Job{of("a", 0, 1, 3, 300), of("b", 10, 1, 4, 400), of("c", 20, 1, 1, 10)}),
			want: []float64{100, 190, 190}, makespan: 210,
		},
		"rigid jobs at their minimum sizes": {
			cluster: strict, jobs: AtMinimum([]Job{of("a", 0, 1, 3, 300), of("b", 10, 1, 4, 400), of("c", 20, 1, 1, 10)}),
			want: []float64{300, 400, 10}, makespan: 410,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := tc.cluster.Run(tc.jobs)
			if diff := cmp.Diff(tc.want, took(got)); diff != "" {
				t.Errorf("durations (-want +got):\n%s", diff)
			}
			if got.Makespan.Truncate(time.Second) != seconds(tc.makespan) || got.Resizes != tc.resizes {
				t.Errorf("makespan = %s with %d resizes, want %d s with %d", got.Makespan, got.Resizes, tc.makespan, tc.resizes)
			}
			if diff := cmp.Diff(tc.first, steps(got, 0)); tc.first != nil && diff != "" {
				t.Errorf("steps of the first job (-want +got):\n%s", diff)
			}
		})
	}
}

// TestJobThatDoesNotFitNeverEnds: the simulation ends although the job does not.
func TestJobThatDoesNotFitNeverEnds(t *testing.T) {
	got := Cluster{GPUs: 4}.Run([]Job{of("too large", 0, 5, 8, 100), of("small", 1, 1, 1, 10)})
	if got.Ended() || got.Took[0] >= 0 || got.Took[1] != seconds(10) {
		t.Errorf("durations = %v, want none for the first job and 10 s for the second", got.Took)
	}
}

// drawn returns a random cluster and jobs.
func drawn(t *rapid.T) (Cluster, []Job) {
	c := Cluster{
		GPUs: rapid.Int64Range(16, 64).Draw(t, "GPUs"),
		Strategy: rapid.SampledFrom([]engine.Strategy{engine.BestEffort, engine.Strict}).
			Draw(t, "strategy"),
		ResizeLoses: seconds(rapid.IntRange(0, 60).Draw(t, "resize loses")),
		PodsLeaveIn: seconds(rapid.IntRange(0, 20).Draw(t, "pods leave in")),
		Growth: elastic.Policy{GrowAfter: seconds(rapid.IntRange(0, 60).Draw(t, "grow after")),
			ResizeCost: seconds(rapid.IntRange(0, 60).Draw(t, "resize cost"))},
	}
	m := Mix{Jobs: rapid.IntRange(1, 40).Draw(t, "jobs"), Within: time.Hour, Largest: 16, Sigma: 1.5,
		Exponent: rapid.SampledFrom([]float64{0.6, 0.85, 1}).Draw(t, "exponent")}
	jobs := m.Draw(rapid.Uint64().Draw(t, "seed"), c.GPUs, rapid.Float64Range(0.2, 2).Draw(t, "load"))
	if rapid.Bool().Draw(t, "priorities differ") {
		for i := range jobs {
			jobs[i].Priority = int32(i % 3)
		}
	}
	return c, jobs
}

func TestSimulationIsDeterministic(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, jobs := drawn(t)
		if diff := cmp.Diff(c.Run(jobs), c.Run(slices.Clone(jobs))); diff != "" {
			t.Fatalf("results of two runs (-first +second):\n%s", diff)
		}
	})
}

// TestHeldGPUsNeverExceedTheCluster: at any time jobs hold at most all GPUs, and each running job has a size within its
// bounds.
func TestHeldGPUsNeverExceedTheCluster(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, jobs := drawn(t)
		held, sum := make([]int32, len(jobs)), int64(0)
		for _, s := range c.Run(jobs).Steps {
			sum += int64(s.Held - held[s.Job])
			held[s.Job] = s.Held
			if job := jobs[s.Job]; sum > c.GPUs || s.Held < s.Replicas ||
				s.Replicas != 0 && (s.Replicas < job.Min || s.Replicas > job.Max) {
				t.Fatalf("%d of %d GPUs are held after step %+v of job %+v", sum, c.GPUs, s, job)
			}
		}
		if sum != 0 {
			t.Errorf("%d GPUs are held at the end, want none", sum)
		}
	})
}

// TestGrowthIsDelayed: among jobs of one priority, a job grows no sooner than GrowAfter after its start or last resize,
// which bounds how often it grows per hour, and it can shrink only as far as it has grown. (A higher priority takes at
// once what it can use.)
func TestGrowthIsDelayed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, jobs := drawn(t)
		for i := range jobs {
			jobs[i].Priority = 0
		}
		size, since := make([]int32, len(jobs)), make([]time.Duration, len(jobs))
		for _, s := range c.Run(jobs).Steps {
			before := size[s.Job]
			if s.Replicas == before {
				continue
			}
			if rested := s.At - since[s.Job]; before > 0 && s.Replicas > before && rested+time.Second <= c.Growth.GrowAfter {
				// the engine counts whole seconds
				t.Fatalf("job %d grows from %d to %d after %s, want at least %s", s.Job, before, s.Replicas, rested,
					c.Growth.GrowAfter)
			}
			size[s.Job], since[s.Job] = s.Replicas, s.At
		}
	})
}

// TestNoWorkIsLostOrGained: the work done at the sizes of a job over time, minus the work that its resizes lose, is its
// work.
func TestNoWorkIsLostOrGained(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, jobs := drawn(t)
		result := c.Run(jobs)
		if !result.Ended() {
			t.Fatalf("not all jobs ended; durations: %v", result.Took)
		}
		for i, job := range jobs {
			done, stands, before := 0.0, time.Duration(0), Step{}
			started := false
			for _, s := range result.Steps {
				if s.Job != i {
					continue
				}
				if before.Replicas > 0 {
					stood := min(stands, s.At-before.At)
					stands -= stood
					done += math.Pow(float64(before.Replicas), job.Exponent) * (s.At - before.At - stood).Seconds()
				} else {
					stands = max(0, stands-(s.At-before.At))
				}
				if started && s.Replicas > 0 && s.Replicas != before.Replicas {
					stands += c.ResizeLoses
				}
				started = started || s.Replicas > 0
				before = s
			}
			if math.Abs(done-job.Work.Seconds()) > 1e-3 {
				t.Fatalf("job %+v has done %f s of work", job, done)
			}
		}
	})
}
