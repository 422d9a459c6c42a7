package jobset

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
)

// succeeded evaluates the success policy: all Jobs of the target replicated jobs have succeeded, or any of them. An
// empty list of targets means all replicated jobs, and without a policy all Jobs must succeed. A JobSet without any
// succeeded Job has not succeeded.
func (a *attempt) succeeded() bool {
	if len(a.children.succeeded) == 0 {
		return false
	}
	policy := jobset.SuccessPolicy{Operator: jobset.OperatorAll}
	if a.js.Spec.SuccessPolicy != nil {
		policy = *a.js.Spec.SuccessPolicy
	}
	var succeeded, wanted int32
	for _, rj := range a.js.Spec.ReplicatedJobs {
		if len(policy.TargetReplicatedJobs) == 0 || slices.Contains(policy.TargetReplicatedJobs, rj.Name) {
			succeeded += a.counts(rj.Name).Succeeded
			wanted += rj.Replicas
		}
	}
	if policy.Operator == jobset.OperatorAny {
		return succeeded > 0
	}
	return succeeded >= wanted
}

// complete ends the JobSet as completed. As in fail, the status is written first. What still runs is deleted by the
// next plan, once the end is recorded.
func (a *attempt) complete() {
	a.plan.StatusFirst = true
	a.js.Status.TerminalState = string(jobset.JobSetCompleted)
	a.set(jobset.JobSetCompleted, metav1.ConditionTrue, jobset.AllJobsCompletedReason, jobset.AllJobsCompletedMessage, corev1.EventTypeNormal)
	a.turnOff(jobset.JobSetRestarting, jobset.RestartCompletedReason, jobset.AllJobsCompletedMessage)
}
