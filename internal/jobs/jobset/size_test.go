package jobset

import (
	"math"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
	"github.com/musterhq/muster/api/muster"
	"github.com/musterhq/muster/internal/jobs"
)

// workersOf sets the size of the workers' Jobs in the spec.
func (s setBuilder) workersOf(pods int32) setBuilder {
	spec := &s.js.Spec.ReplicatedJobs[1].Template.Spec
	spec.Parallelism, spec.Completions = &pods, &pods
	return s
}

// of sets the size of the Job.
func (j jobBuilder) of(pods int32) jobBuilder {
	j.job.Spec.Parallelism, j.job.Spec.Completions = &pods, &pods
	j.job.Spec.CompletionMode = ptr.To(batchv1.IndexedCompletion)
	return j
}

// quota returns an admission of this many workers, of which left still hold their quota.
func quota(count, left int32) jobs.Admission {
	return jobs.Admission{Grant: jobs.Admitted, PodSets: map[string]jobs.PodSetAdmission{
		"leader": {Count: 1, Asked: 1, Left: 1}, "workers": {Count: count, Asked: count, Left: left}}}
}

func TestRunningJobsFollowTheSizeInTheSpec(t *testing.T) {
	const waits = "Warning ResizeWaitsForQuota: Jobs of workers have quota for 4 pods each, not 6: they grow at the next admission;" +
		" to grow them now, set spec.active of the JobSet's Workload to false and then to true"
	for name, tc := range map[string]struct {
		js        setBuilder
		admission jobs.Admission
		sizes     map[string]int32 // of the changed Jobs
		reclaim   int32
		events    []string
	}{
		"larger, without a queue": {newSet().workersOf(6), unqueued,
			map[string]int32{"js-workers-0": 6, "js-workers-1": 6}, 0, nil},
		"smaller, without a queue": {newSet().workersOf(1), unqueued,
			map[string]int32{"js-workers-0": 1, "js-workers-1": 1}, 0, nil},
		"same size": {newSet().workersOf(4), unqueued, nil, 0, nil},
		"smaller, with quota": {newSet().workersOf(1), quota(8, 8),
			map[string]int32{"js-workers-0": 1, "js-workers-1": 1}, 0, nil},
		"larger than the quota":              {newSet().workersOf(6), quota(8, 8), nil, 0, []string{waits}},
		"larger than the quota that is left": {newSet().workersOf(6), quota(12, 8), nil, 4, []string{waits}},
		"larger within the quota": {newSet().workersOf(5), quota(12, 12),
			map[string]int32{"js-workers-0": 5, "js-workers-1": 5}, 2, nil},
	} {
		t.Run(name, func(t *testing.T) {
			p := checkedPlan(t, tc.js.js, tc.admission,
				of(job("leader", 0).ready(), job("workers", 0).of(4).withPods(4, 0), job("workers", 1).of(4).withPods(4, 0)))
			got := map[string]int32{}
			for _, w := range p.Writes {
				changed := w.Object().(*batchv1.Job)
				got[changed.Name] = *changed.Spec.Parallelism
				if *changed.Spec.Completions != *changed.Spec.Parallelism || w.Verb() != "change" {
					t.Errorf("%s %s: parallelism %d, completions %d, want a change to one size", w.Verb(), changed.Name,
						*changed.Spec.Parallelism, *changed.Spec.Completions)
				}
			}
			same(t, "sizes", tc.sizes, got)
			same(t, "events", tc.events, events(p))
			if p.Progress.Reclaimable["workers"] != tc.reclaim {
				t.Errorf("reclaimable pods = %v, want %d workers", p.Progress.Reclaimable, tc.reclaim)
			}
		})
	}
}

// TestQuotaOfASmallerJobIsReturnedOnceItsPodsAreGone, of which the Job controller may not have reported all yet.
func TestQuotaOfASmallerJobIsReturnedOnceItsPodsAreGone(t *testing.T) {
	for _, tc := range []struct {
		name    string
		workers jobBuilder
		writes  []string
		reclaim int32
	}{
		{"its last growth is not reported", job("workers", 0).of(6).withPods(3, 0),
			[]string{"change status of Job js-workers-0"}, 0},
		{"still larger", job("workers", 0).of(6).withPods(6, 0), []string{"change Job js-workers-0"}, 0},
		{"smaller, not reported", job("workers", 0).of(4).withPods(6, 0), nil, 0},
		{"pods terminate", job("workers", 0).of(4).withPods(4, 1), nil, 1},
		{"pods are gone", job("workers", 0).of(4).withPods(4, 0), nil, 2},
	} {
		js := newSet().workersOf(4)
		js.js.Spec.ReplicatedJobs[1].Replicas = 1
		p := checkedPlan(t, js.js, quota(6, 6), of(job("leader", 0).ready(), tc.workers))
		same(t, tc.name+": writes", tc.writes, writes(p))
		same(t, tc.name+": reclaimable pods", tc.reclaim, p.Progress.Reclaimable["workers"])
	}
}

func TestSizesOfCreatedOrResumedJobs(t *testing.T) {
	p := checkedPlan(t, newSet().workersOf(6).js, quota(8, 8),
		of(job("leader", 0).ready(), job("workers", 0).of(2).suspended()))
	for _, w := range p.Writes {
		if got := w.Object().(*batchv1.Job); *got.Spec.Parallelism != 4 || *got.Spec.Completions != 4 || *got.Spec.Suspend {
			t.Errorf("%s %s: spec %+v, want 4 pods and no suspension", w.Verb(), got.Name, got.Spec)
		}
	}
	same(t, "writes", []string{"change Job js-workers-0", "create Job js-workers-1"}, writes(p))
}

// TestJobsWithoutPodsHaveNone: Jobs of zero pods are created as such, with any quota and without a queue.
func TestJobsWithoutPodsHaveNone(t *testing.T) {
	for name, admission := range map[string]jobs.Admission{"without a queue": unqueued, "in a queue": quota(0, 0),
		"with quota left": quota(8, 8)} {
		p := checkedPlan(t, newSet().workersOf(0).js, admission, of(job("leader", 0).ready()))
		for _, name := range []string{"js-workers-0", "js-workers-1"} {
			if spec := createdJob(t, p, name).Spec; *spec.Parallelism != 0 || *spec.Completions != 0 {
				t.Errorf("%s: parallelism %d, completions %d, want 0", name, *spec.Parallelism, *spec.Completions)
			}
		}
		same(t, name+": events", nil, events(p))
	}
}

// TestJobsRunOnlyWhatTheirJobSetHasQuotaFor: users that change the Jobs of a JobSet get neither more nor larger pods.
func TestJobsRunOnlyWhatTheirJobSetHasQuotaFor(t *testing.T) {
	widened := func(b jobBuilder) jobBuilder { b.job.Spec.Parallelism = ptr.To[int32](50); return b }
	requesting := func(cpu string) []corev1.Container {
		return []corev1.Container{{Name: "c",
			Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{"cpu": resource.MustParse(cpu)}}}}
	}
	withRequests := func(b jobBuilder, cpu string) jobBuilder {
		b.job.Spec.Template.Spec.Containers = requesting(cpu)
		return b.suspended()
	}
	for name, tc := range map[string]struct {
		admission jobs.Admission
		worker    jobBuilder
		writes    []string
		pods      int32
	}{
		"higher parallelism": {quota(2, 2), widened(job("workers", 0).ready()),
			[]string{"change Job js-workers-0"}, 1},
		"higher parallelism of a suspended Job": {quota(2, 2), widened(job("workers", 0).suspended()),
			[]string{"change Job js-workers-0"}, 1},
		"higher parallelism without a queue": {unqueued, widened(job("workers", 0).ready()), nil, 0},
		"larger pods": {quota(2, 2), withRequests(job("workers", 0), "64"),
			[]string{"delete Job js-workers-0"}, 0},
		"smaller pods, as by a webhook": {quota(2, 2), withRequests(job("workers", 0), "1"),
			[]string{"change Job js-workers-0"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			set := newSet()
			for i := range set.js.Spec.ReplicatedJobs {
				set.js.Spec.ReplicatedJobs[i].Template.Spec.Template.Spec.Containers = requesting("2")
			}
			p := checkedPlan(t, set.js, tc.admission, of(job("leader", 0).ready(), tc.worker, job("workers", 1).ready()))
			same(t, "writes", tc.writes, writes(p))
			for _, w := range p.Writes {
				if changed := w.Object().(*batchv1.Job); tc.pods > 0 && *changed.Spec.Parallelism != tc.pods {
					t.Errorf("parallelism = %d, want %d", *changed.Spec.Parallelism, tc.pods)
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
		"no restarts":                {newSet().workersOf(4), 4},
		"restarts left":              {newSet().workersOf(4).restarts(1, jobset.Recreate), 0},
		"restarts left, Jobs shrunk": {newSet().workersOf(3).restarts(1, jobset.Recreate), 2},
	} {
		if got := checkedPlan(t, tc.js.js, quota(8, 8), children).Progress.Reclaimable["workers"]; got != tc.reclaim {
			t.Errorf("%s: %d workers reclaimable, want %d", name, got, tc.reclaim)
		}
	}
}

// TestTooManyJobsAreNotPlanned: a JobSet that was stored before the API limited their number says so, and its plan
// takes memory for none of them.
func TestTooManyJobsAreNotPlanned(t *testing.T) {
	for name, js := range map[string]*jobset.JobSet{
		"one replicated job":                        newSet().with("more", math.MaxInt32).js,
		"a sum that overflows":                      newSet().with("more", math.MaxInt32).with("and-more", math.MaxInt32).js,
		"one more than allowed":                     newSet().with("more", mostJobs-2).js,
		"a number that a negative one makes up for": newSet().with("more", mostJobs).with("fewer", -mostJobs).js,
		"on nodes of their user":                    setBuilder{manuallyLabelled()}.with("more", math.MaxInt32).js,
	} {
		if d := describe(js, jobs.Facts{}); len(d.PodSets) > 0 {
			t.Errorf("%s: it queues for %d pod sets", name, len(d.PodSets))
		}
		for grant, admission := range map[string]jobs.Admission{"unqueued": unqueued, "admitted": admitted} {
			p := plan(seenOf(js, admission, of(job("leader", 0).suspended())))
			c := meta.FindStatusCondition(statusOf(p).Conditions, muster.CannotStartCondition)
			if c == nil || c.Status != metav1.ConditionTrue || !strings.Contains(c.Message, "must be at most 10000 together") {
				t.Errorf("%s, %s: condition %+v, want CannotStart", name, grant, c)
			}
			for _, w := range writes(p) {
				if strings.Contains(w, " Job ") {
					t.Errorf("%s, %s: it plans to %s", name, grant, w)
				}
			}
		}
	}
	if d := describe(newSet().with("more", mostJobs-3).js, jobs.Facts{}); len(d.PodSets) != 3 {
		t.Errorf("the largest JobSet queues for %d pod sets, want 3", len(d.PodSets))
	}
}
