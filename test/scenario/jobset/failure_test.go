package jobset

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
)

func rules(max int32, rules ...jobset.FailurePolicyRule) *jobset.FailurePolicy {
	return &jobset.FailurePolicy{MaxRestarts: max, Rules: rules}
}

func TestAFailureOfOneJobRestartsThatJobAlone(t *testing.T) {
	w := newWorld(t)
	js := w.set()
	js.Spec.FailurePolicy = rules(1,
		jobset.FailurePolicyRule{Name: "leader", Action: jobset.FailJobSet, TargetReplicatedJobs: []string{"leader"}},
		jobset.FailurePolicyRule{Name: "alone", Action: jobset.RestartJob, OnJobFailureReasons: []string{batchv1.JobReasonBackoffLimitExceeded}})
	w.Create(js)
	before := w.thereAre("js-leader-0", "js-workers-0", "js-workers-1")
	w.run("js-leader-0", "js-workers-0", "js-workers-1")
	w.fail(1, "js-workers-1")
	w.UntilEvent("js", jobset.RestartJobFailurePolicyActionReason)
	after := w.jobs("workers-1 is made anew", func(jobs map[string]batchv1.Job) bool {
		job, ok := jobs["js-workers-1"]
		return ok && job.UID != before["js-workers-1"].UID
	})
	if job := after["js-workers-1"]; job.Labels[jobset.JobRestartAttemptKey] != "1" || job.Labels[jobset.RestartAttemptKey] != "0" {
		t.Errorf("labels %v", job.Labels)
	}
	for _, name := range []string{"js-leader-0", "js-workers-0"} {
		if after[name].UID != before[name].UID {
			t.Errorf("%s was made anew too", name)
		}
	}
	restarting := w.jobSet("js", "restarts", is(jobset.JobSetRestarting, metav1.ConditionTrue, "FailurePolicy_alone"))
	if got := meta.FindStatusCondition(restarting.Status.Conditions, string(jobset.JobSetRestarting)).Message; got != "applying RestartJob failure policy action (first failed job: js-workers-1)" {
		t.Errorf("message %q", got)
	}
	w.run("js-workers-1")
	js = w.jobSet("js", "is ready again", is(jobset.JobSetRestarting, metav1.ConditionFalse, jobset.JobsReadyReason))
	status := js.Status.ReplicatedJobsStatus[0]
	if js.Status.Restarts != 0 || status.Name != "workers" || len(status.JobRestarts) != 2 || status.JobRestarts[1] != 1 || status.JobRestartsCountTowardsMax[1] != 1 {
		t.Errorf("status %+v", js.Status)
	}
	// The budget is spent: the next one is the end.
	w.fail(1, "js-workers-0")
	js = w.jobSet("js", "fails", is(jobset.JobSetFailed, metav1.ConditionTrue, jobset.ReachedMaxRestartsReason))
	if got := meta.FindStatusCondition(js.Status.Conditions, string(jobset.JobSetFailed)).Message; got != "jobset failed due to reaching max number of restarts (first failed job: js-workers-0)" {
		t.Errorf("message %q", got)
	}
	w.thereAre("js-workers-0") // what ran on is deleted, what failed is kept for its logs
}

func TestARuleReadsTheMessageOfAFailure(t *testing.T) {
	w := newWorld(t)
	js := w.set()
	js.Spec.FailurePolicy = rules(5, jobset.FailurePolicyRule{Name: "code", Action: jobset.FailJobSet,
		OnJobFailureReasons: []string{batchv1.JobReasonPodFailurePolicy}, OnJobFailureMessagePatterns: []string{"exit code (41|42)"}})
	js.Spec.ReplicatedJobs[1].Template.Spec.PodFailurePolicy = &batchv1.PodFailurePolicy{Rules: []batchv1.PodFailurePolicyRule{{
		Action:      batchv1.PodFailurePolicyActionFailJob,
		OnExitCodes: &batchv1.PodFailurePolicyOnExitCodesRequirement{Operator: batchv1.PodFailurePolicyOnExitCodesOpNotIn, Values: []int32{0}}}}}
	w.Create(js)
	first := w.thereAre("js-leader-0", "js-workers-0", "js-workers-1")
	w.run("js-leader-0", "js-workers-0", "js-workers-1")
	w.fail(7, "js-workers-0") // no rule is for it: all restart
	js = w.jobSet("js", "restarts", is(jobset.JobSetRestarting, metav1.ConditionTrue, jobset.DefaultFailurePolicyReason))
	if js.Status.Restarts != 1 || js.Status.RestartsCountTowardsMax != 1 {
		t.Errorf("status %+v", js.Status)
	}
	w.jobs("are all new", func(jobs map[string]batchv1.Job) bool {
		fresh := 0
		for name, job := range jobs {
			if job.UID != first[name].UID && job.Labels[jobset.RestartAttemptKey] == "1" {
				fresh++
			}
		}
		return fresh == 3 && len(jobs) == 3
	})
	w.run("js-workers-0")
	w.fail(42, "js-workers-0")
	js = w.jobSet("js", "fails", is(jobset.JobSetFailed, metav1.ConditionTrue, jobset.FailJobSetFailurePolicyActionReason))
	if js.Status.TerminalState != "Failed" || js.Status.Restarts != 1 {
		t.Errorf("status %+v", js.Status)
	}
	if got := meta.FindStatusCondition(js.Status.Conditions, string(jobset.JobSetFailed)).Message; got != "applying FailJobSet failure policy action (first failed job: js-workers-0)" {
		t.Errorf("message %q", got)
	}
	if e := w.UntilEvent("js", jobset.FailJobSetFailurePolicyActionReason); e.Type != corev1.EventTypeWarning || e.Action != "Reconciling" {
		t.Errorf("event %+v", e)
	}
}

func TestIgnoredRestartsDoNotCount(t *testing.T) {
	w := newWorld(t)
	js := w.set()
	js.Spec.FailurePolicy = rules(0, jobset.FailurePolicyRule{Action: jobset.RestartJobSetAndIgnoreMaxRestarts})
	js.Spec.FailurePolicy.RestartStrategy = jobset.BlockingRecreate
	w.Create(js)
	for attempt := int32(1); attempt <= 2; attempt++ {
		w.run("js-leader-0")
		w.fail(1, "js-leader-0")
		js = w.jobSet("js", "restarts", func(js *jobset.JobSet) bool { return js.Status.Restarts == attempt })
		if js.Status.RestartsCountTowardsMax != 0 || !is(jobset.JobSetRestarting, metav1.ConditionTrue, "FailurePolicy_failurePolicyRule0")(js) {
			t.Errorf("status %+v", js.Status)
		}
		w.jobs("are of the new attempt", func(jobs map[string]batchv1.Job) bool {
			for _, job := range jobs {
				if job.Labels[jobset.RestartAttemptKey] != string('0'+rune(attempt)) {
					return false
				}
			}
			return len(jobs) == 3
		})
	}
	w.succeed("js-leader-0", "js-workers-0", "js-workers-1")
	w.jobSet("js", "completes", is(jobset.JobSetCompleted, metav1.ConditionTrue, jobset.AllJobsCompletedReason))
}
