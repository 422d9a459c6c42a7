package jobset

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
	"github.com/musterhq/muster/internal/jobs"
)

// succeeded evaluates the success policy: all Jobs of the target replicated jobs have succeeded, or any of them. An
// empty list of targets means all replicated jobs, and without a policy all Jobs must succeed. A JobSet without any
// succeeded Job has not succeeded.
func (p *planner) succeeded() bool {
	if len(p.children.succeeded) == 0 {
		return false
	}
	policy := jobset.SuccessPolicy{Operator: jobset.OperatorAll}
	if p.js.Spec.SuccessPolicy != nil {
		policy = *p.js.Spec.SuccessPolicy
	}
	var succeeded, wanted int32
	for _, rj := range p.js.Spec.ReplicatedJobs {
		if len(policy.TargetReplicatedJobs) == 0 || slices.Contains(policy.TargetReplicatedJobs, rj.Name) {
			succeeded += p.counts(rj.Name).Succeeded
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

// warnOfNoSuccess records that the success policy can never be met: it asks for the success of any Job of replicated jobs
// that have none. Replicas and success policy are immutable.
func (p *planner) warnOfNoSuccess() {
	policy := p.js.Spec.SuccessPolicy
	if policy == nil || policy.Operator != jobset.OperatorAny || len(policy.TargetReplicatedJobs) == 0 {
		return
	}
	for _, rj := range p.js.Spec.ReplicatedJobs {
		if rj.Replicas > 0 && slices.Contains(policy.TargetReplicatedJobs, rj.Name) {
			return
		}
	}
	p.plan.Events = append(p.plan.Events, jobs.Obstacle(neverSucceedsReason, fmt.Sprintf(
		"The JobSet can never succeed: successPolicy waits for a Job of %s, whose replicas is 0, to succeed. Create the JobSet again with another policy",
		strings.Join(policy.TargetReplicatedJobs, ", "))))
}

// complete ends the JobSet as completed. As in fail, the status is written first. What still runs is deleted by the
// next plan, once the end is recorded.
func (p *planner) complete() {
	p.plan.StatusFirst = true
	p.js.Status.TerminalState = string(jobset.JobSetCompleted)
	p.setCondition(jobset.JobSetCompleted, metav1.ConditionTrue, jobset.AllJobsCompletedReason, jobset.AllJobsCompletedMessage, corev1.EventTypeNormal)
	p.clearCondition(jobset.JobSetRestarting, jobset.RestartCompletedReason, jobset.AllJobsCompletedMessage)
}
