package jobset

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/jobs/write"
)

// succeeded evaluates the success policy: all Jobs of the target replicated jobs have succeeded, or any of them. An
// empty list of targets means all replicated jobs, and without a policy all Jobs must succeed. A JobSet without any
// succeeded Job has not succeeded.
func (v *view) succeeded() bool {
	if len(v.children.succeeded) == 0 {
		return false
	}
	policy := jobset.SuccessPolicy{Operator: jobset.OperatorAll}
	if v.js.Spec.SuccessPolicy != nil {
		policy = *v.js.Spec.SuccessPolicy
	}
	var succeeded, wanted int32
	for _, rj := range v.js.Spec.ReplicatedJobs {
		if len(policy.TargetReplicatedJobs) == 0 || slices.Contains(policy.TargetReplicatedJobs, rj.Name) {
			succeeded += v.counts(rj.Name).Succeeded
			wanted += rj.Replicas
		}
	}
	if policy.Operator == jobset.OperatorAny {
		return succeeded > 0
	}
	return succeeded >= wanted
}

// neverSucceedsReason is the reason of the event on a JobSet whose success policy can never be met.
const neverSucceedsReason = "SuccessPolicyNeverMet"

// warnOfNoSuccess records that the success policy can never be met: it asks for the success of any Job of replicated
// jobs that have none. Replicas and success policy are immutable.
func (r *reporter) warnOfNoSuccess() {
	policy := r.js.Spec.SuccessPolicy
	if policy == nil || policy.Operator != jobset.OperatorAny || len(policy.TargetReplicatedJobs) == 0 {
		return
	}
	for _, rj := range r.js.Spec.ReplicatedJobs {
		if rj.Replicas > 0 && slices.Contains(policy.TargetReplicatedJobs, rj.Name) {
			return
		}
	}
	r.plan.AddEvents(write.Obstacle(neverSucceedsReason, fmt.Sprintf(
		"The JobSet can never succeed: successPolicy waits for a Job of %s, whose replicas is 0, to succeed. Create the JobSet again with another policy",
		strings.Join(policy.TargetReplicatedJobs, ", "))))
}

// complete ends the JobSet as completed. As in fail, the status is written first. What still runs is deleted by the
// next plan, once the end is recorded.
func (r *reporter) complete() {
	r.plan.StatusFirst = true
	r.js.Status.TerminalState = string(jobset.JobSetCompleted)
	r.setCondition(jobset.JobSetCompleted, metav1.ConditionTrue, jobset.AllJobsCompletedReason,
		jobset.AllJobsCompletedMessage, corev1.EventTypeNormal)
	r.clearCondition(jobset.JobSetRestarting, jobset.RestartCompletedReason, jobset.AllJobsCompletedMessage)
}

// fail ends the JobSet as failed. The status is written first: the JobSet's quota goes to others, so it must never run
// again after that.
func (r *reporter) fail(reason, message string) {
	r.plan.StatusFirst = true
	r.js.Status.TerminalState = string(jobset.JobSetFailed)
	r.setCondition(jobset.JobSetFailed, metav1.ConditionTrue, reason, message, corev1.EventTypeWarning)
	r.clearCondition(jobset.JobSetRestarting, jobset.RestartJobSetFailedReason, jobset.RestartJobSetFailedMessage)
}

// hasOutcome reports whether the JobSet has ended.
func hasOutcome(js *jobset.JobSet) bool { return outcomeOf(js) != nil }

// outcomeOf returns how the JobSet ended, nil if it has not.
func outcomeOf(js *jobset.JobSet) *jobs.Outcome {
	if c := outcomeCondition(js); c != nil {
		return &jobs.Outcome{Succeeded: c.Type == string(jobset.JobSetCompleted), Message: c.Message}
	}
	return nil
}

// outcomeTime returns when the JobSet, which has an outcome, ended.
func outcomeTime(js *jobset.JobSet) time.Time { return outcomeCondition(js).LastTransitionTime.Time }

// outcomeCondition returns the condition that says how the JobSet ended, nil if it has not.
func outcomeCondition(js *jobset.JobSet) *metav1.Condition {
	for _, kind := range []jobset.JobSetConditionType{jobset.JobSetCompleted, jobset.JobSetFailed} {
		if c := meta.FindStatusCondition(js.Status.Conditions, string(kind)); c != nil && c.Status == metav1.ConditionTrue {
			return c
		}
	}
	return nil
}
