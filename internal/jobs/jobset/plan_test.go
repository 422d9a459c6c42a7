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
)

// The words of conditions and events.
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
		"without a queue all Jobs and the Service are made at once": {
			js: newSet(), admission: unqueued, writes: allNew},
		"what is missing is made, what is there stays": {
			js: newSet(), admission: unqueued, children: of(job("leader", 0).ready(), job("workers", 1).active()),
			writes: []string{"create Job js-workers-0"}},
		"who runs as it should is left alone": {
			js: newSet(), admission: unqueued, children: of(job("leader", 0).ready(), job("workers", 0).ready(), job("workers", 1).ready())},
		"one that its user suspended gets suspended Jobs": {
			js: newSet().suspended(), admission: unqueued,
			writes:     []string{"create Service js", "create Job js-leader-0, suspended", "create Job js-workers-0, suspended", "create Job js-workers-1, suspended"},
			conditions: []string{isSuspended}, events: []string{"Normal SuspendedJobs: jobset is suspended"}},
		"suspending stops what runs, and what ended stays": {
			js: newSet().suspended(), admission: unqueued, children: of(job("leader", 0).succeeded(), job("workers", 0).ready(), job("workers", 1).suspended()),
			writes:     []string{"change Job js-workers-0, suspended"},
			conditions: []string{isSuspended}, events: []string{"Normal SuspendedJobs: jobset is suspended"}},
		"who stays suspended is told nothing new": {
			js:       newSet().suspended().is(jobset.JobSetSuspended, metav1.ConditionTrue, "SuspendedJobs", "jobset is suspended"),
			children: of(job("leader", 0).suspended(), job("workers", 0).suspended(), job("workers", 1).suspended()), admission: unqueued,
			conditions: []string{isSuspended}},
		"resuming starts all": {
			js:       newSet().is(jobset.JobSetSuspended, metav1.ConditionTrue, "SuspendedJobs", "jobset is suspended"),
			children: of(job("leader", 0).suspended(), job("workers", 0).suspended(), job("workers", 1).suspended()), admission: unqueued,
			writes:     []string{"change Job js-leader-0", "change Job js-workers-0", "change Job js-workers-1"},
			conditions: []string{isResumed}, events: []string{"Normal ResumeJobs: jobset is resumed"}},
		"a Job that is on its way out is neither resumed nor made anew": {
			js: newSet(), children: of(job("leader", 0).suspended().deleting(), job("workers", 0).ready(), job("workers", 1).ready()), admission: unqueued},

		"one that waits in a queue gets nothing, and says that it is suspended": {
			js: newSet(), admission: waiting, children: []client.Object{},
			conditions: []string{isSuspended}, events: []string{"Normal SuspendedJobs: jobset is suspended"}},
		"one that was admitted gets all": {
			js: newSet(), admission: admitted, writes: allNew},
		"one that its user had suspended is resumed by the queue, and all else waits": {
			js: newSet().suspended(), admission: admitted, writes: []string{"change JobSet js"}},
		"one that must give its quota back stops": {
			js: newSet(), admission: stopping, children: of(job("leader", 0).ready(), job("workers", 0).ready()),
			writes:     []string{"change Job js-leader-0, suspended", "change Job js-workers-0, suspended"},
			conditions: []string{isSuspended}, events: []string{"Normal SuspendedJobs: jobset is suspended"}},
		"what runs goes on though its flavor is gone, and nothing is started": {
			js: newSet(), admission: jobs.Admission{Grant: jobs.Admitted, MissingFlavor: "gone"}, children: of(job("leader", 0).ready(), job("workers", 0).suspended())},

		"all Jobs succeeded": {
			js: newSet(), admission: unqueued, children: of(job("leader", 0).succeeded(), job("workers", 0).succeeded(), job("workers", 1).succeeded()),
			conditions: []string{isCompleted}, events: []string{"Normal AllJobsCompleted: jobset completed successfully"}},
		"all but one succeeded": {
			js: newSet(), admission: unqueued, children: of(job("leader", 0).succeeded(), job("workers", 0).succeeded(), job("workers", 1).ready())},
		"any one is enough if the policy says so": {
			js: newSet().succeedsBy(jobset.OperatorAny), admission: unqueued, children: of(job("leader", 0).ready(), job("workers", 0).succeeded(), job("workers", 1).ready()),
			conditions: []string{isCompleted}, events: []string{"Normal AllJobsCompleted: jobset completed successfully"}},
		"any of the targets is: another does not count": {
			js: newSet().succeedsBy(jobset.OperatorAny, "leader"), admission: unqueued, children: of(job("leader", 0).ready(), job("workers", 0).succeeded(), job("workers", 1).ready())},
		"all of the targets are: others may run": {
			js: newSet().succeedsBy(jobset.OperatorAll, "leader"), admission: unqueued, children: of(job("leader", 0).succeeded(), job("workers", 0).ready(), job("workers", 1).ready()),
			conditions: []string{isCompleted}, events: []string{"Normal AllJobsCompleted: jobset completed successfully"}},
		"all of several targets are": {
			js: newSet().succeedsBy(jobset.OperatorAll, "leader", "workers"), admission: unqueued, children: of(job("leader", 0).succeeded(), job("workers", 0).ready(), job("workers", 1).ready())},
		"success of an attempt that is over does not count": {
			js: newSet().restarts(3, jobset.Recreate).restarted(1), admission: unqueued,
			children: of(job("leader", 0).succeeded(), job("workers", 0).succeeded(), job("workers", 1).succeeded()),
			writes:   []string{"delete Job js-leader-0", "delete Job js-workers-0", "delete Job js-workers-1"}},

		"without a policy the first failure is the end": {
			js: newSet(), admission: unqueued, children: of(job("leader", 0).failed(), job("workers", 0).ready(), job("workers", 1).ready()),
			conditions: []string{isFailed}, events: []string{"Warning FailedJobs: jobset failed due to one or more job failures (first failed job: js-leader-0)"}},
		"failure goes before success": {
			js: newSet().succeedsBy(jobset.OperatorAny), admission: unqueued, children: of(job("leader", 0).failed(), job("workers", 0).succeeded()),
			conditions: []string{isFailed}, events: []string{"Warning FailedJobs: jobset failed due to one or more job failures (first failed job: js-leader-0)"}},
		"the first that failed is named, and of several at once the first by name": {
			js: newSet(), admission: unqueued, children: of(job("leader", 0).ended("Failed", now), job("workers", 1).ended("Failed", now.Add(-time.Minute)), job("workers", 0).ended("Failed", now.Add(-time.Minute))),
			conditions: []string{"Failed=True FailedJobs: jobset failed due to one or more job failures (first failed job: js-workers-0)"},
			events:     []string{"Warning FailedJobs: jobset failed due to one or more job failures (first failed job: js-workers-0)"}},
		"while restarts are left a failure restarts all": {
			js: newSet().restarts(1, jobset.Recreate), admission: unqueued, children: of(job("leader", 0).failed(), job("workers", 0).succeeded(), job("workers", 1).ready()),
			writes:     []string{"delete Job js-leader-0", "delete Job js-workers-0", "delete Job js-workers-1"},
			conditions: []string{isRestarting},
			events: []string{"Warning DefaultFailurePolicy: applying RestartJobSet failure policy action (first failed job: js-leader-0)",
				"Warning RestartJobSetFailurePolicyAction: applying RestartJobSet failure policy action (first failed job: js-leader-0)"}},
		"failure number maxRestarts+1 is the end": {
			js: newSet().restarts(1, jobset.Recreate).restarted(1), admission: unqueued, children: of(job("leader", 0).attempt("1").failed(), job("workers", 0).attempt("1").ready()),
			conditions: []string{isExhausted}, events: []string{"Warning ReachedMaxRestarts: jobset failed due to reaching max number of restarts (first failed job: js-leader-0)"}},
		"a maxRestarts below zero is as zero": {
			js: newSet().restarts(-1, jobset.Recreate), admission: unqueued, children: of(job("leader", 0).failed()),
			conditions: []string{isExhausted}, events: []string{"Warning ReachedMaxRestarts: jobset failed due to reaching max number of restarts (first failed job: js-leader-0)"}},
		"under Recreate each Job is made anew as its old one is gone": {
			js: newSet().restarts(3, jobset.Recreate).restarted(1), admission: unqueued, children: of(job("leader", 0).failed().deleting(), job("workers", 1).ready()),
			writes: []string{"delete Job js-workers-1", "create Job js-workers-0"}},
		"under BlockingRecreate none before all old ones are gone": {
			js: newSet().restarts(3, jobset.BlockingRecreate).restarted(1), admission: unqueued, children: of(job("leader", 0).failed().deleting(), job("workers", 1).ready()),
			writes: []string{"delete Job js-workers-1"}},
		"and then all": {
			js: newSet().restarts(3, jobset.BlockingRecreate).restarted(1), admission: unqueued, children: of(),
			writes: []string{"create Job js-leader-0", "create Job js-workers-0", "create Job js-workers-1"}},
		"a restart is over when all Jobs are ready": {
			js:        newSet().restarted(1).is(jobset.JobSetRestarting, metav1.ConditionTrue, "DefaultFailurePolicy", "m"),
			admission: unqueued, children: of(job("leader", 0).attempt("1").ready(), job("workers", 0).attempt("1").ready(), job("workers", 1).attempt("1").succeeded()),
			conditions: []string{"RestartingJobSet=False JobsReady: all jobs are ready"}, events: []string{"Normal JobsReady: all jobs are ready"}},
		"or when it is suspended": {
			js:         newSet().restarted(1).is(jobset.JobSetRestarting, metav1.ConditionTrue, "DefaultFailurePolicy", "m"),
			admission:  waiting,
			conditions: []string{"RestartingJobSet=False JobSetSuspended: jobset is suspended", isSuspended},
			events:     []string{"Normal JobSetSuspended: jobset is suspended", "Normal SuspendedJobs: jobset is suspended"}},
		"or when the JobSet fails": {
			js:        newSet().restarted(1).is(jobset.JobSetRestarting, metav1.ConditionTrue, "DefaultFailurePolicy", "m"),
			admission: unqueued, children: of(job("leader", 0).attempt("1").failed()),
			conditions: []string{"RestartingJobSet=False JobSetFailed: jobset failed", isFailed},
			events:     []string{"Warning FailedJobs: jobset failed due to one or more job failures (first failed job: js-leader-0)", "Normal JobSetFailed: jobset failed"}},
		"or when it succeeds": {
			js:        newSet().succeedsBy(jobset.OperatorAny).restarted(1).is(jobset.JobSetRestarting, metav1.ConditionTrue, "DefaultFailurePolicy", "m"),
			admission: unqueued, children: of(job("leader", 0).attempt("1").succeeded()),
			conditions: []string{"RestartingJobSet=False JobSetCompleted: jobset completed successfully", isCompleted},
			events:     []string{"Normal AllJobsCompleted: jobset completed successfully", "Normal JobSetCompleted: jobset completed successfully"}},
		"a failure counts though the JobSet is suspended": {
			js: newSet().suspended().restarts(1, jobset.Recreate), admission: unqueued, children: of(job("leader", 0).failed(), job("workers", 0).suspended()),
			writes:     []string{"delete Job js-leader-0", "delete Job js-workers-0"},
			conditions: []string{isRestarting},
			events: []string{"Warning DefaultFailurePolicy: applying RestartJobSet failure policy action (first failed job: js-leader-0)",
				"Warning RestartJobSetFailurePolicyAction: applying RestartJobSet failure policy action (first failed job: js-leader-0)"}},
		"and so does success": {
			js: newSet().suspended().succeedsBy(jobset.OperatorAny), admission: stopping, children: of(job("leader", 0).succeeded(), job("workers", 0).suspended()),
			conditions: []string{isCompleted}, events: []string{"Normal AllJobsCompleted: jobset completed successfully"}},
		"a Job that somebody deletes, or that its own time to live does, is made and run again": {
			js: newSet(), admission: unqueued, children: of(job("workers", 0).succeeded(), job("workers", 1).ready()), writes: []string{"create Job js-leader-0"}},
		"a Job that does not say its attempt counts as of the present one": {
			js: newSet().restarted(1), admission: unqueued, children: of(job("leader", 0).attempt("").ready(), job("workers", 0).attempt("1").ready(), job("workers", 1).attempt("x").ready())},
	} {
		t.Run(name, func(t *testing.T) {
			p := look(t, tc.js.js, tc.admission, tc.children)
			same(t, "writes", tc.writes, writes(p))
			if p.Status != nil {
				same(t, "conditions", tc.conditions, conditions(p))
			}
			same(t, "events", tc.events, events(p))
		})
	}
}

func TestARestartIsCountedBeforeAnythingIsDeleted(t *testing.T) {
	js := newSet().restarts(2, jobset.Recreate).restarted(1).js
	old, young := job("workers", 1).failed(), job("leader", 0).attempt("1").failed()
	p := look(t, js, unqueued, of(old, young))
	if !p.StatusFirst {
		t.Error("the status is not written first")
	}
	status := statusOf(p)
	if status.Restarts != 2 || status.RestartsCountTowardsMax != 2 || status.TerminalState != "" {
		t.Errorf("status %+v", status)
	}
	same(t, "counts: none is of the new attempt", []jobset.ReplicatedJobStatus{{Name: "workers"}, {Name: "leader"}}, status.ReplicatedJobsStatus)
	want := []jobs.Write{jobs.Delete(young.job, metav1.DeletePropagationForeground), jobs.Delete(old.job, metav1.DeletePropagationForeground)}
	if diff := cmp.Diff(want, p.Writes, cmp.AllowUnexported(jobs.Write{})); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
}

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
		"a completed JobSet does not fail any more": {completed(), of(job("leader", 0).failed(), job("workers", 0).succeeded(), job("workers", 1).succeeded()), nil},
		"a failed one does not succeed":             {failed(), of(job("leader", 0).succeeded(), job("workers", 0).succeeded(), job("workers", 1).succeeded()), nil},
		"a failed one does not restart":             {failed(), of(job("leader", 0).failed()), nil},
		"what still runs is deleted, what ended is kept": {
			completed(), of(job("leader", 0).succeeded(), job("workers", 0).ready(), job("workers", 1).suspended()),
			[]string{"delete Job js-workers-0", "delete Job js-workers-1"}},
		"what is on its way out is not deleted again": {completed(), of(job("workers", 0).ready().deleting()), nil},
		"nothing is made anew":                        {completed(), nil, nil},
	} {
		for _, grant := range []jobs.Admission{unqueued, waiting, stopping, admitted} {
			t.Run(name+"/"+string(grant.Grant), func(t *testing.T) {
				p := look(t, tc.js.js, grant, tc.children)
				same(t, "writes", tc.writes, writes(p))
				same(t, "conditions", tc.js.js.Status.Conditions, statusOf(p).Conditions)
				same(t, "events", nil, events(p))
				if p.Progress.Outcome == nil {
					t.Error("its queue is not told")
				}
			})
		}
	}
}

func TestTTL(t *testing.T) {
	ended := newSet().ttl(3600+60).is(jobset.JobSetFailed, metav1.ConditionTrue, "FailedJobs", "m")
	p := look(t, ended.js, unqueued, nil)
	if want := now.Add(time.Minute); !p.Due.Equal(want) || len(p.Writes) != 0 {
		t.Errorf("due %v, want %v; writes %v", p.Due, want, writes(p))
	}
	ended.ttl(3600)
	p = look(t, ended.js, unqueued, nil)
	want := []jobs.Write{jobs.Delete(ended.js, metav1.DeletePropagationForeground)}
	if diff := cmp.Diff(want, p.Writes, cmp.AllowUnexported(jobs.Write{})); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
	if p := look(t, newSet().ttl(0).js, unqueued, nil); !p.Due.IsZero() {
		t.Error("a JobSet that has not ended has a time to live")
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
		"nothing was made yet":                            {newSet(), nil, jobs.Progress{}},
		"a Job that is to start may have pods":            {newSet(), of(job("leader", 0)), jobs.Progress{Lacking: 1, Active: true}},
		"a suspended Job with pods has them still":        {newSet(), of(job("leader", 0).active().suspended()), jobs.Progress{Active: true}},
		"a suspended Job has them until the last is gone": {newSet(), of(terminating), jobs.Progress{Active: true}},
		"a suspended Job without pods has none":           {newSet(), of(job("leader", 0).suspended()), jobs.Progress{}},
		"a Job of an attempt that is over has them too":   {newSet().restarted(1), of(job("leader", 0).ready().deleting()), jobs.Progress{Active: true}},
		"one that ended has none": {newSet().succeedsBy(jobset.OperatorAll, "workers"), of(job("leader", 0).succeeded()),
			jobs.Progress{Reclaimable: map[string]int32{"leader": 1}}},
		"one that a restart may run again keeps its quota": {newSet().succeedsBy(jobset.OperatorAll, "workers").restarts(1, ""), of(job("leader", 0).succeeded()), jobs.Progress{}},
		"it gives it back with the last restart": {newSet().succeedsBy(jobset.OperatorAll, "workers").restarts(1, "").restarted(1), of(job("leader", 0).attempt("1").succeeded()),
			jobs.Progress{Reclaimable: map[string]int32{"leader": 1}}},
		"all are ready": {newSet(), of(job("leader", 0).ready(), job("workers", 0).ready(), job("workers", 1).succeeded()),
			jobs.Progress{Active: true, Ready: true, Reclaimable: map[string]int32{"workers": 1}}},
		"the end is told with its message": {newSet(), of(job("leader", 0).failed()),
			jobs.Progress{Outcome: &jobs.Outcome{Message: "jobset failed due to one or more job failures (first failed job: js-leader-0)"}}},
		"success too": {newSet().succeedsBy(jobset.OperatorAny), of(job("leader", 0).succeeded()),
			jobs.Progress{Reclaimable: map[string]int32{"leader": 1}, Outcome: &jobs.Outcome{Succeeded: true, Message: "jobset completed successfully"}}},
	} {
		t.Run(name, func(t *testing.T) {
			same(t, "progress", tc.want, look(t, tc.js.js, unqueued, tc.children).Progress)
		})
	}
}

// TestTimeToLiveOfAJobStartsWithTheEndOfTheJobSet: a Job deleted before would be run again.
func TestTimeToLiveOfAJobStartsWithTheEndOfTheJobSet(t *testing.T) {
	ttl := func(b setBuilder, seconds int32) setBuilder {
		b.js.Spec.ReplicatedJobs[1].Template.Spec.TTLSecondsAfterFinished = &seconds
		return b
	}
	for _, w := range look(t, ttl(newSet(), 0).js, unqueued, of()).Writes {
		if made, is := w.Object().(*batchv1.Job); is && made.Spec.TTLSecondsAfterFinished != nil {
			t.Errorf("%s is made with a time to live of its own", made.Name)
		}
	}
	done := of(job("leader", 0).succeeded(), job("workers", 0).succeeded(), job("workers", 1).succeeded())
	ended := newSet().is(jobset.JobSetCompleted, metav1.ConditionTrue, "AllJobsCompleted", "m") // an hour ago
	p := look(t, ttl(ended, 3600+60).js, unqueued, done)
	if want := now.Add(time.Minute); !p.Due.Equal(want) || len(p.Writes) != 0 {
		t.Errorf("due %v, want %v; writes %v", p.Due, want, writes(p))
	}
	same(t, "writes", []string{"delete Job js-workers-0", "delete Job js-workers-1"}, writes(look(t, ttl(ended, 3600).js, unqueued, done)))
}
