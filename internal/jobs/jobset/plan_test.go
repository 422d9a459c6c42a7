package jobset

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/jobs/write"
)

// Conditions as the helper conditions returns them.
const (
	isSuspended  = "Suspended=True SuspendedJobs: jobset is suspended"
	isResumed    = "Suspended=False ResumeJobs: jobset is resumed"
	isCompleted  = "Completed=True AllJobsCompleted: jobset completed successfully"
	isFailed     = "Failed=True FailedJobs: jobset failed due to one or more job failures (first failed job: js-leader-0)"
	isExhausted  = "Failed=True ReachedMaxRestarts: jobset failed due to reaching max number of restarts (first failed job: js-leader-0)"
	isRestarting = "RestartingJobSet=True DefaultFailurePolicy: applying RestartJobSet failure policy action (first failed job: js-leader-0)"
)

func TestPlan(t *testing.T) {
	allNew := []string{"create Service js", "create Job js-leader-0", "create Job js-workers-0", "create Job js-workers-1"}
	for name, tc := range map[string]struct {
		js         setBuilder
		admission  jobs.Admission
		children   []client.Object
		writes     []string
		conditions []string
		events     []string
	}{
		"without a queue": {
			js: newSet(), admission: unqueued, writes: allNew},
		"without a queue, one Job missing": {
			js: newSet(), admission: unqueued, children: of(job("leader", 0).ready(), job("workers", 1).active()),
			writes: []string{"create Job js-workers-0"}},
		"without a queue, all Jobs exist": {
			js: newSet(), admission: unqueued,
			children: of(job("leader", 0).ready(), job("workers", 0).ready(), job("workers", 1).ready())},
		"created suspended": {
			js: newSet().suspended(), admission: unqueued,
			writes: []string{"create Service js", "create Job js-leader-0, suspended", "create Job js-workers-0, suspended",
				"create Job js-workers-1, suspended"},
			conditions: []string{isSuspended}, events: []string{"Normal SuspendedJobs: jobset is suspended"}},
		"suspended while Jobs run": {
			js: newSet().suspended(), admission: unqueued,
			children:   of(job("leader", 0).succeeded(), job("workers", 0).ready(), job("workers", 1).suspended()),
			writes:     []string{"change Job js-workers-0, suspended"},
			conditions: []string{isSuspended}, events: []string{"Normal SuspendedJobs: jobset is suspended"}},
		"still suspended": {
			js: newSet().suspended().is(jobset.JobSetSuspended, metav1.ConditionTrue, "SuspendedJobs",
				"jobset is suspended"),
			children:   of(job("leader", 0).suspended(), job("workers", 0).suspended(), job("workers", 1).suspended()),
			admission:  unqueued,
			conditions: []string{isSuspended}},
		"resumed": {
			js:         newSet().is(jobset.JobSetSuspended, metav1.ConditionTrue, "SuspendedJobs", "jobset is suspended"),
			children:   of(job("leader", 0).suspended(), job("workers", 0).suspended(), job("workers", 1).suspended()),
			admission:  unqueued,
			writes:     []string{"change Job js-leader-0", "change Job js-workers-0", "change Job js-workers-1"},
			conditions: []string{isResumed}, events: []string{"Normal ResumeJobs: jobset is resumed"}},
		"suspended Job terminating": {
			js: newSet(), children: of(job("leader", 0).suspended().deleting(), job("workers", 0).ready(),
				job("workers", 1).ready()), admission: unqueued},

		"waiting in a queue": {
			js: newSet(), admission: waiting, children: []client.Object{},
			conditions: []string{isSuspended}, events: []string{"Normal SuspendedJobs: jobset is suspended"}},
		"admitted": {
			js: newSet(), admission: admitted, writes: allNew},
		"admitted, created suspended": {
			js: newSet().suspended(), admission: admitted, writes: []string{"change JobSet js"}},
		"must release its quota": {
			js: newSet(), admission: stopping, children: of(job("leader", 0).ready(), job("workers", 0).ready()),
			writes:     []string{"change Job js-leader-0, suspended", "change Job js-workers-0, suspended"},
			conditions: []string{isSuspended}, events: []string{"Normal SuspendedJobs: jobset is suspended"}},
		"flavor missing while Jobs run": {
			js: newSet(), admission: jobs.Admission{Grant: jobs.Admitted, MissingFlavor: "gone"},
			children: of(job("leader", 0).ready(), job("workers", 0).suspended())},

		"all Jobs succeeded": {
			js: newSet(), admission: unqueued,
			children:   of(job("leader", 0).succeeded(), job("workers", 0).succeeded(), job("workers", 1).succeeded()),
			conditions: []string{isCompleted}, events: []string{"Normal AllJobsCompleted: jobset completed successfully"}},
		"all Jobs but one succeeded": {
			js: newSet(), admission: unqueued,
			children: of(job("leader", 0).succeeded(), job("workers", 0).succeeded(), job("workers", 1).ready())},
		"success policy Any": {
			js: newSet().succeedsBy(jobset.OperatorAny), admission: unqueued,
			children:   of(job("leader", 0).ready(), job("workers", 0).succeeded(), job("workers", 1).ready()),
			conditions: []string{isCompleted}, events: []string{"Normal AllJobsCompleted: jobset completed successfully"}},
		"success policy Any of a target, another Job succeeded": {
			js: newSet().succeedsBy(jobset.OperatorAny, "leader"), admission: unqueued,
			children: of(job("leader", 0).ready(), job("workers", 0).succeeded(), job("workers", 1).ready())},
		"success policy All of a target": {
			js: newSet().succeedsBy(jobset.OperatorAll, "leader"), admission: unqueued,
			children:   of(job("leader", 0).succeeded(), job("workers", 0).ready(), job("workers", 1).ready()),
			conditions: []string{isCompleted}, events: []string{"Normal AllJobsCompleted: jobset completed successfully"}},
		"success policy All of two targets, one incomplete": {
			js: newSet().succeedsBy(jobset.OperatorAll, "leader", "workers"), admission: unqueued,
			children: of(job("leader", 0).succeeded(), job("workers", 0).ready(), job("workers", 1).ready())},
		"success in an earlier attempt": {
			js: newSet().restarts(3, jobset.Recreate).restarted(1), admission: unqueued,
			children: of(job("leader", 0).succeeded(), job("workers", 0).succeeded(), job("workers", 1).succeeded()),
			writes:   []string{"delete Job js-leader-0", "delete Job js-workers-0", "delete Job js-workers-1"}},

		"failure without a policy": {
			js: newSet(), admission: unqueued,
			children:   of(job("leader", 0).failed(), job("workers", 0).ready(), job("workers", 1).ready()),
			conditions: []string{isFailed},
			events:     []string{"Warning FailedJobs: jobset failed due to one or more job failures (first failed job: js-leader-0)"}},
		"failure and success": {
			js: newSet().succeedsBy(jobset.OperatorAny), admission: unqueued,
			children:   of(job("leader", 0).failed(), job("workers", 0).succeeded()),
			conditions: []string{isFailed},
			events:     []string{"Warning FailedJobs: jobset failed due to one or more job failures (first failed job: js-leader-0)"}},
		"several failures, of which the earliest and then the first by name is reported": {
			js: newSet(), admission: unqueued,
			children: of(job("leader", 0).ended("Failed", now), job("workers", 1).ended("Failed", now.Add(-time.Minute)),
				job("workers", 0).ended("Failed", now.Add(-time.Minute))),
			conditions: []string{"Failed=True FailedJobs: jobset failed due to one or more job failures (first failed job: js-workers-0)"},
			events:     []string{"Warning FailedJobs: jobset failed due to one or more job failures (first failed job: js-workers-0)"}},
		"failure with a restart left": {
			js: newSet().restarts(1, jobset.Recreate), admission: unqueued,
			children:   of(job("leader", 0).failed(), job("workers", 0).succeeded(), job("workers", 1).ready()),
			writes:     []string{"delete Job js-leader-0", "delete Job js-workers-0", "delete Job js-workers-1"},
			conditions: []string{isRestarting},
			events: []string{"Warning DefaultFailurePolicy: applying RestartJobSet failure policy action (first failed job: js-leader-0)",
				"Warning RestartJobSetFailurePolicyAction: applying RestartJobSet failure policy action (first failed job: js-leader-0)"}},
		"failure without a restart left": {
			js: newSet().restarts(1, jobset.Recreate).restarted(1), admission: unqueued,
			children:   of(job("leader", 0).attempt("1").failed(), job("workers", 0).attempt("1").ready()),
			conditions: []string{isExhausted},
			events:     []string{"Warning ReachedMaxRestarts: jobset failed due to reaching max number of restarts (first failed job: js-leader-0)"}},
		"negative maxRestarts": {
			js: newSet().restarts(-1, jobset.Recreate), admission: unqueued, children: of(job("leader", 0).failed()),
			conditions: []string{isExhausted},
			events:     []string{"Warning ReachedMaxRestarts: jobset failed due to reaching max number of restarts (first failed job: js-leader-0)"}},
		"restart with Recreate, one Job gone": {
			js: newSet().restarts(3, jobset.Recreate).restarted(1), admission: unqueued,
			children: of(job("leader", 0).failed().deleting(), job("workers", 1).ready()),
			writes:   []string{"delete Job js-workers-1", "create Job js-workers-0"}},
		"restart with BlockingRecreate, one Job gone": {
			js: newSet().restarts(3, jobset.BlockingRecreate).restarted(1), admission: unqueued,
			children: of(job("leader", 0).failed().deleting(), job("workers", 1).ready()),
			writes:   []string{"delete Job js-workers-1"}},
		"restart with BlockingRecreate, all Jobs gone": {
			js: newSet().restarts(3, jobset.BlockingRecreate).restarted(1), admission: unqueued, children: of(),
			writes: []string{"create Job js-leader-0", "create Job js-workers-0", "create Job js-workers-1"}},
		"restarted, all Jobs ready": {
			js:        newSet().restarted(1).is(jobset.JobSetRestarting, metav1.ConditionTrue, "DefaultFailurePolicy", "m"),
			admission: unqueued, children: of(job("leader", 0).attempt("1").ready(), job("workers", 0).attempt("1").ready(),
				job("workers", 1).attempt("1").succeeded()),
			conditions: []string{"RestartingJobSet=False JobsReady: all jobs are ready"},
			events:     []string{"Normal JobsReady: all jobs are ready"}},
		"restarted, then suspended": {
			js:         newSet().restarted(1).is(jobset.JobSetRestarting, metav1.ConditionTrue, "DefaultFailurePolicy", "m"),
			admission:  waiting,
			conditions: []string{"RestartingJobSet=False JobSetSuspended: jobset is suspended", isSuspended},
			events:     []string{"Normal JobSetSuspended: jobset is suspended", "Normal SuspendedJobs: jobset is suspended"}},
		"restarted, then failed": {
			js:        newSet().restarted(1).is(jobset.JobSetRestarting, metav1.ConditionTrue, "DefaultFailurePolicy", "m"),
			admission: unqueued, children: of(job("leader", 0).attempt("1").failed()),
			conditions: []string{"RestartingJobSet=False JobSetFailed: jobset failed", isFailed},
			events: []string{"Warning FailedJobs: jobset failed due to one or more job failures (first failed job: js-leader-0)",
				"Normal JobSetFailed: jobset failed"}},
		"restarted, then succeeded": {
			js: newSet().succeedsBy(jobset.OperatorAny).restarted(1).is(jobset.JobSetRestarting, metav1.ConditionTrue,
				"DefaultFailurePolicy", "m"),
			admission: unqueued, children: of(job("leader", 0).attempt("1").succeeded()),
			conditions: []string{"RestartingJobSet=False JobSetCompleted: jobset completed successfully", isCompleted},
			events: []string{"Normal AllJobsCompleted: jobset completed successfully",
				"Normal JobSetCompleted: jobset completed successfully"}},
		"failure while suspended": {
			js: newSet().suspended().restarts(1, jobset.Recreate), admission: unqueued,
			children:   of(job("leader", 0).failed(), job("workers", 0).suspended()),
			writes:     []string{"delete Job js-leader-0", "delete Job js-workers-0"},
			conditions: []string{isRestarting},
			events: []string{"Warning DefaultFailurePolicy: applying RestartJobSet failure policy action (first failed job: js-leader-0)",
				"Warning RestartJobSetFailurePolicyAction: applying RestartJobSet failure policy action (first failed job: js-leader-0)"}},
		"success while stopping": {
			js: newSet().suspended().succeedsBy(jobset.OperatorAny), admission: stopping,
			children:   of(job("leader", 0).succeeded(), job("workers", 0).suspended()),
			conditions: []string{isCompleted}, events: []string{"Normal AllJobsCompleted: jobset completed successfully"}},
		"Job deleted by a user or its TTL": {
			js: newSet(), admission: unqueued, children: of(job("workers", 0).succeeded(), job("workers", 1).ready()),
			writes: []string{"create Job js-leader-0"}},
		"Jobs without a valid attempt, which count as of the current one": {
			js: newSet().restarted(1), admission: unqueued, children: of(job("leader", 0).attempt("").ready(),
				job("workers", 0).attempt("1").ready(), job("workers", 1).attempt("x").ready())},
	} {
		t.Run(name, func(t *testing.T) {
			p := checkedPlan(t, tc.js.js, tc.admission, tc.children)
			same(t, "writes", tc.writes, writes(p))
			if p.Status != nil {
				same(t, "conditions", tc.conditions, conditions(p))
			}
			same(t, "events", tc.events, events(p))
		})
	}
}

// TestARestartIsCountedBeforeAnythingIsDeleted, so that an operator that is killed in between does not count it twice.
func TestARestartIsCountedBeforeAnythingIsDeleted(t *testing.T) {
	js := newSet().restarts(2, jobset.Recreate).restarted(1).js
	earlier, current := job("workers", 1).failed(), job("leader", 0).attempt("1").failed()
	p := checkedPlan(t, js, unqueued, of(earlier, current))
	if !p.StatusFirst {
		t.Error("the status is not written first")
	}
	status := statusOf(p)
	if status.Restarts != 2 || status.RestartsCountTowardsMax != 2 || status.TerminalState != "" {
		t.Errorf("status = %+v, want 2 restarts, both counted, and no end", status)
	}
	same(t, "counts of the new attempt", []jobset.ReplicatedJobStatus{{Name: "workers"}, {Name: "leader"}},
		status.ReplicatedJobsStatus)
	want := []write.Write{write.DeleteInForeground(current.job),
		write.DeleteInForeground(earlier.job)}
	if diff := cmp.Diff(want, p.Writes, cmp.AllowUnexported(write.Write{})); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
}

// TestOutcomeIsFinal: a JobSet that has ended keeps its conditions, whatever its Jobs do, and its running Jobs are
// deleted.
func TestOutcomeIsFinal(t *testing.T) {
	completed := func() setBuilder {
		return newSet().is(jobset.JobSetCompleted, metav1.ConditionTrue, "AllJobsCompleted", "jobset completed successfully")
	}
	failed := func() setBuilder {
		return newSet().restarts(9, jobset.Recreate).is(jobset.JobSetFailed, metav1.ConditionTrue, "FailedJobs", "m")
	}
	for name, tc := range map[string]struct {
		js       setBuilder
		children []client.Object
		writes   []string
	}{
		"completed, then a Job failed": {completed(),
			of(job("leader", 0).failed(), job("workers", 0).succeeded(), job("workers", 1).succeeded()), nil},
		"failed, then all Jobs succeeded": {failed(),
			of(job("leader", 0).succeeded(), job("workers", 0).succeeded(), job("workers", 1).succeeded()), nil},
		"failed, then a Job failed": {failed(), of(job("leader", 0).failed()), nil},
		"completed, Jobs running": {
			completed(), of(job("leader", 0).succeeded(), job("workers", 0).ready(), job("workers", 1).suspended()),
			[]string{"delete Job js-workers-0", "delete Job js-workers-1"}},
		"completed, Job terminating": {completed(), of(job("workers", 0).ready().deleting()), nil},
		"completed, no Jobs":         {completed(), nil, nil},
	} {
		for _, grant := range []jobs.Admission{unqueued, waiting, stopping, admitted} {
			t.Run(name+"/"+string(grant.Grant), func(t *testing.T) {
				p := checkedPlan(t, tc.js.js, grant, tc.children)
				same(t, "writes", tc.writes, writes(p))
				same(t, "conditions", tc.js.js.Status.Conditions, statusOf(p).Conditions)
				same(t, "events", nil, events(p))
				if p.Progress.Outcome == nil {
					t.Error("Progress.Outcome is nil")
				}
			})
		}
	}
}

func TestTTL(t *testing.T) {
	ended := newSet().ttl(3600+60).is(jobset.JobSetFailed, metav1.ConditionTrue, "FailedJobs", "m")
	p := checkedPlan(t, ended.js, unqueued, nil)
	if want := now.Add(time.Minute); !p.Due.Equal(want) || len(p.Writes) != 0 {
		t.Errorf("due %v, want %v; writes %v", p.Due, want, writes(p))
	}
	ended.ttl(3600)
	p = checkedPlan(t, ended.js, unqueued, nil)
	want := []write.Write{write.DeleteInForeground(ended.js)}
	if diff := cmp.Diff(want, p.Writes, cmp.AllowUnexported(write.Write{})); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
	if p := checkedPlan(t, newSet().ttl(0).js, unqueued, nil); !p.Due.IsZero() {
		t.Errorf("a JobSet that has not ended is due %v by its TTL", p.Due)
	}
}

func TestProgress(t *testing.T) {
	terminating := job("leader", 0).suspended()
	one := int32(1)
	terminating.job.Status.Terminating = &one
	for name, tc := range map[string]struct {
		js       setBuilder
		children []client.Object
		want     jobs.Progress
	}{
		"no Jobs": {newSet(), nil, jobs.Progress{}},
		"Job without a status, which may have pods": {newSet(), of(job("leader", 0)),
			jobs.Progress{Missing: 1, Active: true}},
		"suspended Job with active pods": {newSet(), of(job("leader", 0).active().suspended()),
			jobs.Progress{Active: true}},
		"suspended Job with terminating pods": {newSet(), of(terminating), jobs.Progress{Active: true}},
		"suspended Job without pods":          {newSet(), of(job("leader", 0).suspended()), jobs.Progress{}},
		"terminating Job of an earlier attempt": {newSet().restarted(1), of(job("leader", 0).ready().deleting()),
			jobs.Progress{Active: true}},
		"succeeded Job": {newSet().succeedsBy(jobset.OperatorAll, "workers"), of(job("leader", 0).succeeded()),
			jobs.Progress{Reclaimable: map[string]int32{"leader": 1}}},
		"succeeded Job that a restart may run again": {newSet().succeedsBy(jobset.OperatorAll, "workers").restarts(1, ""),
			of(job("leader", 0).succeeded()), jobs.Progress{}},
		"succeeded Job after the last restart": {newSet().succeedsBy(jobset.OperatorAll, "workers").restarts(1,
			"").restarted(1), of(job("leader", 0).attempt("1").succeeded()),
			jobs.Progress{Reclaimable: map[string]int32{"leader": 1}}},
		"all Jobs ready": {newSet(), of(job("leader", 0).ready(), job("workers", 0).ready(), job("workers", 1).succeeded()),
			jobs.Progress{Active: true, Ready: true, Reclaimable: map[string]int32{"workers": 1}}},
		"failed": {newSet(), of(job("leader", 0).failed()),
			jobs.Progress{Outcome: &jobs.Outcome{
				Message: "jobset failed due to one or more job failures (first failed job: js-leader-0)"}}},
		"succeeded": {newSet().succeedsBy(jobset.OperatorAny), of(job("leader", 0).succeeded()),
			jobs.Progress{Reclaimable: map[string]int32{"leader": 1},
				Outcome: &jobs.Outcome{Succeeded: true, Message: "jobset completed successfully"}}},
	} {
		t.Run(name, func(t *testing.T) {
			same(t, "progress", tc.want, checkedPlan(t, tc.js.js, unqueued, tc.children).Progress)
		})
	}
}

// TestTimeToLiveOfAJobStartsWithTheEndOfTheJobSet: a Job that the Job controller deletes before would be run again.
func TestTimeToLiveOfAJobStartsWithTheEndOfTheJobSet(t *testing.T) {
	ttl := func(b setBuilder, seconds int32) setBuilder {
		b.js.Spec.ReplicatedJobs[1].Template.Spec.TTLSecondsAfterFinished = &seconds
		return b
	}
	for _, w := range checkedPlan(t, ttl(newSet(), 0).js, unqueued, of()).Writes {
		if job, is := w.Object().(*batchv1.Job); is && job.Spec.TTLSecondsAfterFinished != nil {
			t.Errorf("%s is created with a TTL of its own", job.Name)
		}
	}
	done := of(job("leader", 0).succeeded(), job("workers", 0).succeeded(), job("workers", 1).succeeded())
	ended := newSet().is(jobset.JobSetCompleted, metav1.ConditionTrue, "AllJobsCompleted", "m") // an hour ago
	p := checkedPlan(t, ttl(ended, 3600+60).js, unqueued, done)
	if want := now.Add(time.Minute); !p.Due.Equal(want) || len(p.Writes) != 0 {
		t.Errorf("due %v, want %v; writes %v", p.Due, want, writes(p))
	}
	same(t, "writes", []string{"delete Job js-workers-0", "delete Job js-workers-1"},
		writes(checkedPlan(t, ttl(ended, 3600).js, unqueued, done)))
}
