package jobset

import (
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
	"github.com/musterhq/muster/internal/jobs"
)

// applyFailurePolicy decides what a failed Job means: the end, or another attempt
// while the budget lasts. The end comes with failure number maxRestarts+1.
func (a *attempt) applyFailurePolicy() {
	first := firstFailed(a.children.failed)
	suffix := fmt.Sprintf(jobset.FirstFailedJobMessage, first.Name)
	policy := a.js.Spec.FailurePolicy
	switch {
	case policy == nil:
		a.fail(jobset.FailedJobsReason, jobset.FailedJobsMessage+suffix)
	case a.js.Status.RestartsCountTowardsMax >= policy.MaxRestarts:
		a.fail(jobset.ReachedMaxRestartsReason, jobset.ReachedMaxRestartsMessage+suffix)
	default:
		a.restart(jobset.RestartJobSetFailurePolicyActionReason,
			fmt.Sprintf(jobset.RestartFailurePolicyActionMessage, jobset.RestartJobSet)+suffix)
	}
}

// mayRestart reports whether a failure may still begin another attempt.
func mayRestart(js *jobset.JobSet) bool {
	policy := js.Spec.FailurePolicy
	return policy != nil && (js.Status.RestartsCountTowardsMax < policy.MaxRestarts || len(policy.Rules) > 0)
}

// fail ends the JobSet in failure. The end is written first: what it held goes to
// others, and it must never go on then.
func (a *attempt) fail(reason, message string) {
	a.plan.StatusFirst = true
	a.js.Status.TerminalState = string(jobset.JobSetFailed)
	a.set(jobset.JobSetFailed, metav1.ConditionTrue, reason, message, corev1.EventTypeWarning)
	a.turnOff(jobset.JobSetRestarting, jobset.RestartJobSetFailedReason, jobset.RestartJobSetFailedMessage)
}

// restart begins a new attempt. The count is written first: it is what tells, from
// then on, that the Jobs there are belong to the past, so nothing is lost if the
// deletions do not happen now.
func (a *attempt) restart(reason, message string) {
	a.js.Status.Restarts++
	a.js.Status.RestartsCountTowardsMax++
	a.set(jobset.JobSetRestarting, metav1.ConditionTrue, jobset.DefaultFailurePolicyReason, message, corev1.EventTypeWarning)
	a.plan.Events = append(a.plan.Events, jobs.Warning(reason, message))
	a.plan.StatusFirst = true
	a.children = sortChildren(a.children.all(), a.js.Status.Restarts)
	a.countJobs()
	a.deleteJobs(a.children.previous)
}

// noteRestartOver says that an attempt after a restart has all its Jobs ready.
func (a *attempt) noteRestartOver() {
	switch {
	case a.held():
		a.turnOff(jobset.JobSetRestarting, jobset.RestartSuspendedReason, jobset.JobSetSuspendedMessage)
	case a.allReady():
		a.turnOff(jobset.JobSetRestarting, jobset.JobsReadyReason, jobset.JobsReadyMessage)
	}
}

// firstFailed is the Job that failed first; of several at the same time, the first
// by name. There must be one.
func firstFailed(failed []*batchv1.Job) *batchv1.Job {
	first := failed[0]
	for _, job := range failed[1:] {
		if condition(job, batchv1.JobFailed).LastTransitionTime.Time.Before(condition(first, batchv1.JobFailed).LastTransitionTime.Time) {
			first = job
		}
	}
	return first
}
