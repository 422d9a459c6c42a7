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
		// workers and leader are the entries, which are in descending order of their names.
		workers, leader jobset.ReplicatedJobStatus
	}{
		"no Jobs":          {js: newSet()},
		"Job without pods": {js: newSet(), children: of(job("workers", 0))},
		"Job with a pod that is not ready": {js: newSet(), children: of(job("workers", 0).active()),
			workers: jobset.ReplicatedJobStatus{Active: 1}},
		"ready Job": {js: newSet(), children: of(job("workers", 0).ready()),
			workers: jobset.ReplicatedJobStatus{Active: 1, Ready: 1}},
		"suspended Job with a pod": {js: newSet().suspended(),
			children: of(job("workers", 0).active().suspended()), workers: jobset.ReplicatedJobStatus{Active: 1, Suspended: 1}},
		"succeeded Job": {js: newSet(), children: of(job("workers", 0).succeeded()),
			workers: jobset.ReplicatedJobStatus{Succeeded: 1}},
		"failed Job": {js: newSet(), children: of(job("leader", 0).failed()),
			leader: jobset.ReplicatedJobStatus{Failed: 1}},
		"failing Job, a pod of which terminates": {js: newSet(), children: of(job("leader", 0).failing()),
			leader: jobset.ReplicatedJobStatus{Failed: 1}},
		"failing Job, a pod of which is ready": {js: newSet(),
			children: of(job("leader", 0).ready().ended(batchv1.JobFailureTarget, now)),
			leader:   jobset.ReplicatedJobStatus{Failed: 1}},
		"succeeding Job, a pod of which terminates": {js: newSet(),
			children: of(job("leader", 0).ended(batchv1.JobSuccessCriteriaMet, now)),
			leader:   jobset.ReplicatedJobStatus{Active: 1, Ready: 1}},
		"several Jobs": {js: newSet(),
			children: of(job("leader", 0).ready(), job("workers", 0).succeeded(), job("workers", 1).active()),
			workers:  jobset.ReplicatedJobStatus{Succeeded: 1, Active: 1},
			leader:   jobset.ReplicatedJobStatus{Active: 1, Ready: 1}},
		"Job of an earlier attempt": {js: newSet().restarted(1),
			children: of(job("leader", 0).failed(), job("workers", 0).attempt("1").ready()),
			workers:  jobset.ReplicatedJobStatus{Active: 1, Ready: 1}},
		"Jobs of a replicated job that does not exist": {js: newSet(),
			children: of(job("other", 0).ready(), job("other", 1).succeeded())},
	} {
		t.Run(name, func(t *testing.T) {
			tc.workers.Name, tc.leader.Name = "workers", "leader"
			same(t, "counts", []jobset.ReplicatedJobStatus{tc.workers, tc.leader},
				statusOf(checkedPlan(t, tc.js.js, unqueued, tc.children)).ReplicatedJobsStatus)
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
		"all pods ready":                     {of(ptr.To[int32](3), ptr.To[int32](3), 0, 3), true},
		"one pod not ready":                  {of(ptr.To[int32](3), ptr.To[int32](3), 0, 2), false},
		"one pod succeeded":                  {of(ptr.To[int32](3), ptr.To[int32](3), 1, 2), true},
		"fewer completions than parallelism": {of(ptr.To[int32](3), ptr.To[int32](2), 0, 2), true},
		"no status":                          {&batchv1.Job{}, false},
		"succeeded Job":                      {job("leader", 0).succeeded().job, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := isReady(tc.job); got != tc.want {
				t.Errorf("isReady = %v, want %v", got, tc.want)
			}
		})
	}
}

// TestFailedIndexesAreNotWaitedFor: the JobSet's status counts a Job as ready if all its pods are; for the Workload's
// PodsReady those of failed indexes do not count.
func TestFailedIndexesAreNotWaitedFor(t *testing.T) {
	js := newSet().with("many", 1)
	many := &js.js.Spec.ReplicatedJobs[2].Template.Spec
	many.CompletionMode, many.Parallelism, many.Completions, many.BackoffLimitPerIndex = ptr.To(batchv1.IndexedCompletion),
		ptr.To[int32](3), ptr.To[int32](3), ptr.To[int32](0)
	for readyPods, want := range map[int32]bool{1: false, 2: true} {
		with := job("many", 0)
		with.job.Spec.CompletionMode, with.job.Spec.Parallelism, with.job.Spec.Completions = many.CompletionMode,
			many.Parallelism, many.Completions
		with.job.Status.Active, with.job.Status.Ready, with.job.Status.FailedIndexes = 2, ptr.To(readyPods), ptr.To("1")
		p := checkedPlan(t, js.js, admitted,
			of(job("leader", 0).ready(), job("workers", 0).ready(), job("workers", 1).succeeded(), with))
		if p.Progress.Ready != want {
			t.Errorf("with %d of 2 running pods ready: Progress.Ready = %v, want %v", readyPods, p.Progress.Ready, want)
		}
		if got := statusOf(p).ReplicatedJobsStatus[1]; got.Name != "many" || got.Ready != 0 {
			t.Errorf("with %d of 2 running pods ready: status %+v, want no ready Job", readyPods, got)
		}
	}
}

func TestRestartCountsOfEachJobAreKept(t *testing.T) {
	b := newSet()
	b.js.Status.ReplicatedJobsStatus = []jobset.ReplicatedJobStatus{{Name: "leader", JobRestarts: []int32{2},
		JobRestartsCountTowardsMax: []int32{1}}, {Name: "gone"}}
	got := statusOf(checkedPlan(t, b.js, unqueued, nil)).ReplicatedJobsStatus
	same(t, "counts", []jobset.ReplicatedJobStatus{{Name: "workers"},
		{Name: "leader", JobRestarts: []int32{2}, JobRestartsCountTowardsMax: []int32{1}}}, got)
}

func TestConditionTimes(t *testing.T) {
	p := checkedPlan(t, newSet().suspended().js, unqueued, nil)
	if got := statusOf(p).Conditions[0].LastTransitionTime; !got.Time.Equal(now) {
		t.Errorf("lastTransitionTime = %v, want now", got)
	}
	restarting := newSet().restarts(3, jobset.Recreate).is(jobset.JobSetRestarting, metav1.ConditionTrue,
		"DefaultFailurePolicy", "an earlier failure")
	before := restarting.js.Status.Conditions[0].LastTransitionTime
	p = checkedPlan(t, restarting.js, unqueued, of(job("leader", 0).failed()))
	same(t, "conditions", []string{isRestarting}, conditions(p))
	if got := statusOf(p).Conditions[0].LastTransitionTime; !got.Equal(&before) {
		t.Errorf("lastTransitionTime = %v, want %v, as before the new message", got, before)
	}
}

func TestTerminalState(t *testing.T) {
	for name, tc := range map[string]struct {
		children []client.Object
		want     string
	}{
		"": {of(job("leader", 0).ready()), ""},
		"Completed": {of(job("leader", 0).succeeded(), job("workers", 0).succeeded(),
			job("workers", 1).succeeded()), "Completed"},
		"Failed": {of(job("workers", 0).failed()), "Failed"},
	} {
		p := checkedPlan(t, newSet().js, unqueued, tc.children)
		if got := statusOf(p).TerminalState; got != tc.want {
			t.Errorf("terminal state = %q, want %q", got, tc.want)
		}
		if p.StatusFirst != (tc.want != "") {
			t.Errorf("terminal state %q: status first: %v, want %v", name, p.StatusFirst, tc.want != "")
		}
	}
}
