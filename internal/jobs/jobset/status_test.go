package jobset

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
)

func TestCounts(t *testing.T) {
	for name, tc := range map[string]struct {
		js       setBuilder
		children []client.Object
		// want are the entries of workers and leader: descending order of names.
		workers, leader jobset.ReplicatedJobStatus
	}{
		"every replicated job has an entry from the first look on": {js: newSet()},
		"a Job without pods is in no column":                       {js: newSet(), children: of(job("workers", 0))},
		"a pod that is not ready makes a Job active":               {js: newSet(), children: of(job("workers", 0).active()), workers: jobset.ReplicatedJobStatus{Active: 1}},
		"a ready Job is active too":                                {js: newSet(), children: of(job("workers", 0).ready()), workers: jobset.ReplicatedJobStatus{Active: 1, Ready: 1}},
		"a suspended Job is active until its pods are gone":        {js: newSet().suspended(), children: of(job("workers", 0).active().suspended()), workers: jobset.ReplicatedJobStatus{Active: 1, Suspended: 1}},
		"a Job that succeeded is not ready any more":               {js: newSet(), children: of(job("workers", 0).succeeded()), workers: jobset.ReplicatedJobStatus{Succeeded: 1}},
		"nor is one that failed":                                   {js: newSet(), children: of(job("leader", 0).failed()), leader: jobset.ReplicatedJobStatus{Failed: 1}},
		"each is counted where it belongs": {js: newSet(), children: of(job("leader", 0).ready(), job("workers", 0).succeeded(), job("workers", 1).active()),
			workers: jobset.ReplicatedJobStatus{Succeeded: 1, Active: 1}, leader: jobset.ReplicatedJobStatus{Active: 1, Ready: 1}},
		"Jobs of an attempt that is over do not count": {js: newSet().restarted(1), children: of(job("leader", 0).failed(), job("workers", 0).attempt("1").ready()),
			workers: jobset.ReplicatedJobStatus{Active: 1, Ready: 1}},
		"nor do Jobs of a replicated job that is not there": {js: newSet(), children: of(job("other", 0).ready(), job("other", 1).succeeded())},
	} {
		t.Run(name, func(t *testing.T) {
			tc.workers.Name, tc.leader.Name = "workers", "leader"
			same(t, "counts", []jobset.ReplicatedJobStatus{tc.workers, tc.leader}, statusOf(look(t, tc.js.js, unqueued, tc.children)).ReplicatedJobsStatus)
		})
	}
}

func TestReady(t *testing.T) {
	of := func(parallelism, completions *int32, succeeded, readyPods int32) *batchv1.Job {
		return &batchv1.Job{Spec: batchv1.JobSpec{Parallelism: parallelism, Completions: completions},
			Status: batchv1.JobStatus{Succeeded: succeeded, Ready: ptr.To(readyPods)}}
	}
	for name, tc := range map[string]struct {
		job  *batchv1.Job
		want bool
	}{
		"all pods are ready":                                  {of(ptr.To[int32](3), ptr.To[int32](3), 0, 3), true},
		"one is not":                                          {of(ptr.To[int32](3), ptr.To[int32](3), 0, 2), false},
		"one has succeeded already":                           {of(ptr.To[int32](3), ptr.To[int32](3), 1, 2), true},
		"no more than must complete are waited for":           {of(ptr.To[int32](3), ptr.To[int32](2), 0, 2), true},
		"nothing was said of ready pods yet":                  {&batchv1.Job{}, false},
		"a Job that has ended is not ready, it has succeeded": {job("leader", 0).succeeded().job, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := isReady(tc.job); got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}

// TestFailedIndexesAreNotWaitedFor: the public status counts a Job as ready if all its pods are; the queue, if all
// that still run are.
func TestFailedIndexesAreNotWaitedFor(t *testing.T) {
	js := newSet().with("many", 1)
	many := &js.js.Spec.ReplicatedJobs[2].Template.Spec
	many.CompletionMode, many.Parallelism, many.Completions, many.BackoffLimitPerIndex = ptr.To(batchv1.IndexedCompletion), ptr.To[int32](3), ptr.To[int32](3), ptr.To[int32](0)
	for readyPods, want := range map[int32]bool{1: false, 2: true} {
		with := job("many", 0)
		with.job.Spec.CompletionMode, with.job.Spec.Parallelism, with.job.Spec.Completions = many.CompletionMode, many.Parallelism, many.Completions
		with.job.Status.Active, with.job.Status.Ready, with.job.Status.FailedIndexes = 2, ptr.To(readyPods), ptr.To("1")
		p := look(t, js.js, admitted, of(job("leader", 0).ready(), job("workers", 0).ready(), job("workers", 1).succeeded(), with))
		if p.Progress.Ready != want {
			t.Errorf("with %d of two ready, its queue is told %v", readyPods, p.Progress.Ready)
		}
		if got := statusOf(p).ReplicatedJobsStatus[1]; got.Name != "many" || got.Ready != 0 {
			t.Errorf("with %d of two ready, clients are told %+v", readyPods, got)
		}
	}
}

func TestRestartCountsOfEachJobAreKept(t *testing.T) {
	b := newSet()
	b.js.Status.ReplicatedJobsStatus = []jobset.ReplicatedJobStatus{{Name: "leader", JobRestarts: []int32{2}, JobRestartsCountTowardsMax: []int32{1}}, {Name: "gone"}}
	got := statusOf(look(t, b.js, unqueued, nil)).ReplicatedJobsStatus
	same(t, "counts", []jobset.ReplicatedJobStatus{{Name: "workers"}, {Name: "leader", JobRestarts: []int32{2}, JobRestartsCountTowardsMax: []int32{1}}}, got)
}

func TestConditionTimes(t *testing.T) {
	p := look(t, newSet().suspended().js, unqueued, nil)
	if got := statusOf(p).Conditions[0].LastTransitionTime; !got.Time.Equal(now) {
		t.Errorf("dated %v, want now", got)
	}
	restarting := newSet().restarts(3, jobset.Recreate).is(jobset.JobSetRestarting, metav1.ConditionTrue, "DefaultFailurePolicy", "an earlier failure")
	dated := restarting.js.Status.Conditions[0].LastTransitionTime
	p = look(t, restarting.js, unqueued, of(job("leader", 0).failed()))
	same(t, "conditions", []string{isRestarting}, conditions(p))
	if got := statusOf(p).Conditions[0].LastTransitionTime; !got.Equal(&dated) {
		t.Errorf("another message dates it %v", got)
	}
}

func TestTerminalState(t *testing.T) {
	for name, tc := range map[string]struct {
		children []client.Object
		want     string
	}{
		"":          {of(job("leader", 0).ready()), ""},
		"Completed": {of(job("leader", 0).succeeded(), job("workers", 0).succeeded(), job("workers", 1).succeeded()), "Completed"},
		"Failed":    {of(job("workers", 0).failed()), "Failed"},
	} {
		p := look(t, newSet().js, unqueued, tc.children)
		if got := statusOf(p).TerminalState; got != tc.want {
			t.Errorf("%s: terminal state %q", name, got)
		}
		if p.StatusFirst != (tc.want != "") {
			t.Errorf("%s: status first: %v", name, p.StatusFirst)
		}
	}
}
