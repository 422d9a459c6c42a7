package jobset

import (
	"fmt"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
)

// rules returns a failure policy with this maxRestarts and these rules.
func rules(max int32, rules ...jobset.FailurePolicyRule) *jobset.FailurePolicy {
	return &jobset.FailurePolicy{MaxRestarts: max, Rules: rules}
}

// TestAFailureOfOneJobRestartsThatJobAlone: a failure that matches a RestartJob rule recreates only the failed Job and
// counts towards maxRestarts. The next failure fails the JobSet: its running Jobs are deleted, the failed one is kept.
func TestAFailureOfOneJobRestartsThatJobAlone(t *testing.T) {
	w := newWorld(t)
	js := w.set()
	js.Spec.FailurePolicy = rules(1,
		jobset.FailurePolicyRule{Name: "leader", Action: jobset.FailJobSet, TargetReplicatedJobs: []string{"leader"}},
		jobset.FailurePolicyRule{Name: "alone", Action: jobset.RestartJob,
			OnJobFailureReasons: []string{batchv1.JobReasonBackoffLimitExceeded}})
	w.Create(js)
	before := w.untilOnlyJobs("js-leader-0", "js-workers-0", "js-workers-1")
	w.run("js-leader-0", "js-workers-0", "js-workers-1")
	w.fail(1, "js-workers-1")
	w.UntilEvent("js", jobset.RestartJobFailurePolicyActionReason)
	after := w.untilJobs("include a new js-workers-1", func(jobs map[string]batchv1.Job) bool {
		job, ok := jobs["js-workers-1"]
		return ok && job.UID != before["js-workers-1"].UID
	})
	if job := after["js-workers-1"]; job.Labels[jobset.JobRestartAttemptKey] != "1" ||
		job.Labels[jobset.RestartAttemptKey] != "0" {
		t.Errorf("labels of js-workers-1 = %v, want restart attempt 1 of the Job and 0 of the JobSet", job.Labels)
	}
	for _, name := range []string{"js-leader-0", "js-workers-0"} {
		if after[name].UID != before[name].UID {
			t.Errorf("Job %s was recreated, want it to keep running", name)
		}
	}
	restarting := w.untilJobSet("js", "is restarting",
		is(jobset.JobSetRestarting, metav1.ConditionTrue, "FailurePolicy_alone"))
	w.expectMessage(restarting, jobset.JobSetRestarting,
		"applying RestartJob failure policy action (first failed job: js-workers-1)")
	w.run("js-workers-1")
	js = w.untilJobSet("js", "is ready again", is(jobset.JobSetRestarting, metav1.ConditionFalse, jobset.JobsReadyReason))
	status := js.Status.ReplicatedJobsStatus[0]
	if js.Status.Restarts != 0 || status.Name != "workers" || len(status.JobRestarts) != 2 || status.JobRestarts[1] != 1 ||
		status.JobRestartsCountTowardsMax[1] != 1 {
		t.Errorf("status = %+v, want one restart, of js-workers-1", js.Status)
	}
	// maxRestarts is reached: the next failure fails the JobSet.
	w.fail(1, "js-workers-0")
	js = w.untilJobSet("js", "is failed", is(jobset.JobSetFailed, metav1.ConditionTrue, jobset.ReachedMaxRestartsReason))
	w.expectMessage(js, jobset.JobSetFailed,
		"jobset failed due to reaching max number of restarts (first failed job: js-workers-0)")
	w.untilOnlyJobs("js-workers-0") // the running Jobs are deleted, the failed one is kept for its logs
}

// TestAFailureRuleMatchesTheFailureMessage: a rule with message patterns applies only to failures whose message
// matches. Another failure restarts the whole JobSet, which is the default.
func TestAFailureRuleMatchesTheFailureMessage(t *testing.T) {
	w := newWorld(t)
	js := w.set()
	js.Spec.FailurePolicy = rules(5, jobset.FailurePolicyRule{Name: "code", Action: jobset.FailJobSet,
		OnJobFailureReasons:         []string{batchv1.JobReasonPodFailurePolicy},
		OnJobFailureMessagePatterns: []string{"exit code (41|42)"}})
	js.Spec.ReplicatedJobs[1].Template.Spec.PodFailurePolicy = &batchv1.PodFailurePolicy{
		Rules: []batchv1.PodFailurePolicyRule{{
			Action: batchv1.PodFailurePolicyActionFailJob,
			OnExitCodes: &batchv1.PodFailurePolicyOnExitCodesRequirement{Operator: batchv1.PodFailurePolicyOnExitCodesOpNotIn,
				Values: []int32{0}}}}}
	w.Create(js)
	first := w.untilOnlyJobs("js-leader-0", "js-workers-0", "js-workers-1")
	w.run("js-leader-0", "js-workers-0", "js-workers-1")
	w.fail(7, "js-workers-0") // matches no rule: all Jobs restart
	js = w.untilJobSet("js", "is restarting",
		is(jobset.JobSetRestarting, metav1.ConditionTrue, jobset.DefaultFailurePolicyReason))
	if js.Status.Restarts != 1 || js.Status.RestartsCountTowardsMax != 1 {
		t.Errorf("status = %+v, want one restart that counts towards the maximum", js.Status)
	}
	w.untilJobs("are all recreated", func(jobs map[string]batchv1.Job) bool {
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
	js = w.untilJobSet("js", "is failed",
		is(jobset.JobSetFailed, metav1.ConditionTrue, jobset.FailJobSetFailurePolicyActionReason))
	if js.Status.TerminalState != "Failed" || js.Status.Restarts != 1 {
		t.Errorf("status = %+v, want Failed after one restart", js.Status)
	}
	w.expectMessage(js, jobset.JobSetFailed, "applying FailJobSet failure policy action (first failed job: js-workers-0)")
	if e := w.UntilEvent("js", jobset.FailJobSetFailurePolicyActionReason); e.Type != corev1.EventTypeWarning ||
		e.Action != "Reconciling" {
		t.Errorf("event = %+v, want a warning with the action Reconciling", e)
	}
}

// TestIgnoredRestartsDoNotCount: a rule RestartJobSetAndIgnoreMaxRestarts restarts the JobSet as often as it fails,
// even with maxRestarts 0.
func TestIgnoredRestartsDoNotCount(t *testing.T) {
	w := newWorld(t)
	js := w.set()
	js.Spec.FailurePolicy = rules(0, jobset.FailurePolicyRule{Action: jobset.RestartJobSetAndIgnoreMaxRestarts})
	js.Spec.FailurePolicy.RestartStrategy = jobset.BlockingRecreate
	w.Create(js)
	for attempt := int32(1); attempt <= 2; attempt++ {
		w.run("js-leader-0")
		w.fail(1, "js-leader-0")
		js = w.untilJobSet("js", fmt.Sprintf("has %d restarts", attempt),
			func(js *jobset.JobSet) bool { return js.Status.Restarts == attempt })
		if js.Status.RestartsCountTowardsMax != 0 ||
			!is(jobset.JobSetRestarting, metav1.ConditionTrue, "FailurePolicy_failurePolicyRule0")(js) {
			t.Errorf("status = %+v, want a restart that does not count towards the maximum", js.Status)
		}
		w.untilJobs(fmt.Sprintf("are of attempt %d", attempt), func(jobs map[string]batchv1.Job) bool {
			for _, job := range jobs {
				if job.Labels[jobset.RestartAttemptKey] != string('0'+rune(attempt)) {
					return false
				}
			}
			return len(jobs) == 3
		})
	}
	w.succeed("js-leader-0", "js-workers-0", "js-workers-1")
	w.untilJobSet("js", "is completed", is(jobset.JobSetCompleted, metav1.ConditionTrue, jobset.AllJobsCompletedReason))
}
