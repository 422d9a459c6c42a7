package jobset

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
	"github.com/musterhq/muster/internal/jobs"
)

// workersOf sets the size of the Jobs of the workers, in the spec.
func (b setBuilder) workersOf(pods int32) setBuilder {
	spec := &b.js.Spec.ReplicatedJobs[1].Template.Spec
	spec.Parallelism, spec.Completions = &pods, &pods
	return b
}

// of sets the size of a Job that is there.
func (b jobBuilder) of(pods int32) jobBuilder {
	b.job.Spec.Parallelism, b.job.Spec.Completions = &pods, &pods
	b.job.Spec.CompletionMode = ptr.To(batchv1.IndexedCompletion)
	return b
}

// quota is for so many workers, of whom some have given theirs back.
func quota(asked, left int32) jobs.Admission {
	return jobs.Admission{Grant: jobs.Admitted, PodSets: map[string]jobs.PodSetAdmission{
		"leader": {Count: 1, Asked: 1, Left: 1}, "workers": {Count: asked, Asked: asked, Left: left}}}
}

func TestRunningJobsFollowTheSizeInTheSpec(t *testing.T) {
	const waits = "Warning ResizeWaitsForQuota: Jobs of workers have quota for 4 pods each, not 6: they grow at the next admission;" +
		" to grow them now, set spec.active of the JobSet's Workload to false and then to true"
	for name, tc := range map[string]struct {
		js        setBuilder
		admission jobs.Admission
		sizes     map[string]int32 // of the Jobs that are changed
		reclaim   int32
		events    []string
	}{
		"without a queue they grow at once":         {newSet().workersOf(6), unqueued, map[string]int32{"js-workers-0": 6, "js-workers-1": 6}, 0, nil},
		"and shrink":                                {newSet().workersOf(1), unqueued, map[string]int32{"js-workers-0": 1, "js-workers-1": 1}, 0, nil},
		"the same size is no change":                {newSet().workersOf(4), unqueued, nil, 0, nil},
		"in a queue they shrink, and give back":     {newSet().workersOf(1), quota(8, 8), map[string]int32{"js-workers-0": 1, "js-workers-1": 1}, 6, nil},
		"they do not grow beyond their quota":       {newSet().workersOf(6), quota(8, 8), nil, 0, []string{waits}},
		"nor into what was given back":              {newSet().workersOf(6), quota(12, 8), nil, 4, []string{waits}},
		"they may grow again within what they hold": {newSet().workersOf(5), quota(12, 12), map[string]int32{"js-workers-0": 5, "js-workers-1": 5}, 2, nil},
	} {
		t.Run(name, func(t *testing.T) {
			p := look(t, tc.js.js, tc.admission, of(job("leader", 0).ready(), job("workers", 0).of(4).ready(), job("workers", 1).of(4).ready()))
			got := map[string]int32{}
			for _, w := range p.Writes {
				changed := w.Object().(*batchv1.Job)
				got[changed.Name] = *changed.Spec.Parallelism
				if *changed.Spec.Completions != *changed.Spec.Parallelism || w.Verb() != "change" {
					t.Errorf("%s %s: completions %d", w.Verb(), changed.Name, *changed.Spec.Completions)
				}
			}
			same(t, "sizes", tc.sizes, got)
			same(t, "events", tc.events, events(p))
			if p.Progress.Reclaimable["workers"] != tc.reclaim {
				t.Errorf("given back: %v, want %d", p.Progress.Reclaimable, tc.reclaim)
			}
		})
	}
}

func TestSizesOfCreatedOrResumedJobs(t *testing.T) {
	p := look(t, newSet().workersOf(6).js, quota(8, 8), of(job("leader", 0).ready(), job("workers", 0).of(2).suspended()))
	for _, w := range p.Writes {
		if got := w.Object().(*batchv1.Job); *got.Spec.Parallelism != 4 || *got.Spec.Completions != 4 || *got.Spec.Suspend {
			t.Errorf("%s %s: %+v", w.Verb(), got.Name, got.Spec)
		}
	}
	same(t, "writes", []string{"change Job js-workers-0", "create Job js-workers-1"}, writes(p))
}

// TestJobsWithoutPodsHaveNone, whether they were granted none or all were reclaimed.
func TestJobsWithoutPodsHaveNone(t *testing.T) {
	for name, admission := range map[string]jobs.Admission{"without a queue": unqueued, "in a queue": quota(0, 0), "with quota left": quota(8, 8)} {
		p := look(t, newSet().workersOf(0).js, admission, of(job("leader", 0).ready()))
		for _, name := range []string{"js-workers-0", "js-workers-1"} {
			if spec := createdJob(t, p, name).Spec; *spec.Parallelism != 0 || *spec.Completions != 0 {
				t.Errorf("%s of a JobSet: %d pods at a time, %d in all", name, *spec.Parallelism, *spec.Completions)
			}
		}
		same(t, name+": events", nil, events(p))
	}
}

// TestJobsRunOnlyWhatTheirJobSetHasQuotaFor: changing the Jobs of a JobSet gives no more and no larger pods.
func TestJobsRunOnlyWhatTheirJobSetHasQuotaFor(t *testing.T) {
	widened := func(b jobBuilder) jobBuilder { b.job.Spec.Parallelism = ptr.To[int32](50); return b }
	asks := func(cpu string) []corev1.Container {
		return []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{"cpu": resource.MustParse(cpu)}}}}
	}
	asking := func(b jobBuilder, cpu string) jobBuilder {
		b.job.Spec.Template.Spec.Containers = asks(cpu)
		return b.suspended()
	}
	for name, tc := range map[string]struct {
		admission jobs.Admission
		worker    jobBuilder
		writes    []string
		pods      int32
	}{
		"more pods at a time":                       {quota(2, 2), widened(job("workers", 0).ready()), []string{"change Job js-workers-0"}, 1},
		"of one that is resumed":                    {quota(2, 2), widened(job("workers", 0).suspended()), []string{"change Job js-workers-0"}, 1},
		"where no queue has a say they are his own": {unqueued, widened(job("workers", 0).ready()), nil, 0},
		"larger pods":                               {quota(2, 2), asking(job("workers", 0), "64"), []string{"delete Job js-workers-0"}, 0},
		"smaller ones, as a webhook makes all":      {quota(2, 2), asking(job("workers", 0), "1"), []string{"change Job js-workers-0"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			set := newSet()
			for i := range set.js.Spec.ReplicatedJobs {
				set.js.Spec.ReplicatedJobs[i].Template.Spec.Template.Spec.Containers = asks("2")
			}
			p := look(t, set.js, tc.admission, of(job("leader", 0).ready(), tc.worker, job("workers", 1).ready()))
			same(t, "writes", tc.writes, writes(p))
			for _, w := range p.Writes {
				if changed := w.Object().(*batchv1.Job); tc.pods > 0 && *changed.Spec.Parallelism != tc.pods {
					t.Errorf("%d pods at a time, want %d", *changed.Spec.Parallelism, tc.pods)
				}
			}
		})
	}
}

// TestQuotaOfSucceededJobs checks that the pods of a succeeded Job are reclaimed for good, unless a restart could run
// them again.
func TestQuotaOfSucceededJobs(t *testing.T) {
	children := of(job("leader", 0).ready(), job("workers", 0).of(4).succeeded(), job("workers", 1).of(4).ready())
	for name, tc := range map[string]struct {
		js      setBuilder
		reclaim int32
	}{
		"for good":                      {newSet().workersOf(4), 4},
		"kept for a restart":            {newSet().workersOf(4).restarts(1, jobset.Recreate), 0},
		"kept, but for what was shrunk": {newSet().workersOf(3).restarts(1, jobset.Recreate), 2},
	} {
		if got := look(t, tc.js.js, quota(8, 8), children).Progress.Reclaimable["workers"]; got != tc.reclaim {
			t.Errorf("%s: %d given back, want %d", name, got, tc.reclaim)
		}
	}
}
