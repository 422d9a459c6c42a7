package genericjob

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tensorstack "github.com/musterhq/muster/api/tensorstack/v1beta1"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/replicas"
)

// outcomeOf returns how the job has ended, nil if it has not.
func outcomeOf(job *tensorstack.GenericJob) *jobs.Outcome {
	c := condition(job, tensorstack.JobCompleted)
	if c == nil || c.Status != metav1.ConditionTrue {
		return nil
	}
	return &jobs.Outcome{Succeeded: !isTrue(job, tensorstack.JobFailed), Message: c.Message}
}

// judge returns how the job has ended, nil if it has not. A success rule comes before a failure rule,
// and both come before the failure that no success rule can be met any more. A job without success
// rules succeeds with all its replicas.
func judge(job *tensorstack.GenericJob, roster *replicas.Roster) *jobs.Outcome {
	spec := &job.Spec
	if len(spec.SuccessRules) == 0 && roster.All(hasSucceeded) {
		return &jobs.Outcome{Succeeded: true, Message: tensorstack.SucceededMessage}
	}
	for _, rule := range spec.SuccessRules {
		if met(rule, roster, hasSucceeded) {
			return &jobs.Outcome{Succeeded: true, Message: tensorstack.SucceededMessage}
		}
	}
	for _, rule := range spec.FailureRules {
		if met(rule, roster, hasFailed) {
			return &jobs.Outcome{Message: fmt.Sprintf(tensorstack.FailedByRuleMessage, text(rule))}
		}
	}
	because := decisiveFailure(spec.SuccessRules, roster)
	switch {
	case because == nil:
		return nil
	case len(spec.SuccessRules) == 0:
		return &jobs.Outcome{Message: fmt.Sprintf(tensorstack.NotAllSucceededMessage, failures.Of(because))}
	}
	return &jobs.Outcome{Message: fmt.Sprintf(tensorstack.NoSuccessMessage, failures.Of(because))}
}
