package jobset

import (
	"fmt"
	"regexp"
	"slices"

	batchv1 "k8s.io/api/batch/v1"

	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
)

// verdict is what a failure means.
type verdict struct {
	// action is what to do, "" to fail for the want of a policy.
	action jobset.FailurePolicyAction
	// rule is the name of the rule that says so, "" if none does.
	rule string
	// job is the Job that failed: of those that the rule is for, the first.
	job *batchv1.Job
}

// judge finds the first rule, in their order, that any of the failed Jobs matches, of
// which there must be one. Where none does, all Jobs are made anew.
func judge(policy *jobset.FailurePolicy, failed []*batchv1.Job) verdict {
	if policy == nil {
		return verdict{job: firstFailed(failed, anyJob)}
	}
	for i := range policy.Rules {
		rule := &policy.Rules[i]
		if job := firstFailed(failed, matcher(rule)); job != nil {
			return verdict{action: rule.Action, rule: ruleName(rule, i), job: job}
		}
	}
	return verdict{action: jobset.RestartJobSet, job: firstFailed(failed, anyJob)}
}

// matcher reports whether the rule is for a failed Job: its replicated job, and reason
// and message of its failure are among those of the rule, whose empty lists match all.
func matcher(rule *jobset.FailurePolicyRule) func(*batchv1.Job) bool {
	matches := messageMatcher(rule.OnJobFailureMessagePatterns)
	return func(job *batchv1.Job) bool {
		why := condition(job, batchv1.JobFailed)
		return anyOr(rule.TargetReplicatedJobs, job.Labels[jobset.ReplicatedJobNameKey]) &&
			anyOr(rule.OnJobFailureReasons, why.Reason) && matches(why.Message)
	}
}

func anyJob(*batchv1.Job) bool { return true }

// anyOr reports whether the list has the value, or nothing at all.
func anyOr(list []string, value string) bool { return len(list) == 0 || slices.Contains(list, value) }

// messageMatcher reports whether one of the patterns is found in a message. The API
// refuses what is no regular expression; one that was stored before that matches nothing.
func messageMatcher(patterns []string) func(string) bool {
	var compiled []*regexp.Regexp
	for _, pattern := range patterns {
		if expression, err := regexp.Compile(pattern); err == nil {
			compiled = append(compiled, expression)
		}
	}
	return func(message string) bool {
		return len(patterns) == 0 ||
			slices.ContainsFunc(compiled, func(expression *regexp.Regexp) bool { return expression.MatchString(message) })
	}
}

// ruleName is the rule's, or the one that a rule at the index gets that has none.
func ruleName(rule *jobset.FailurePolicyRule, index int) string {
	if rule.Name != "" {
		return rule.Name
	}
	return fmt.Sprintf("failurePolicyRule%d", index)
}

// firstFailed is the Job that failed first of those for which it holds, nil if it holds for
// none; of several at the same time, the first by name.
func firstFailed(failed []*batchv1.Job, holds func(*batchv1.Job) bool) *batchv1.Job {
	var first *batchv1.Job
	for _, job := range failed {
		if holds(job) && (first == nil ||
			condition(job, batchv1.JobFailed).LastTransitionTime.Time.Before(condition(first, batchv1.JobFailed).LastTransitionTime.Time)) {
			first = job
		}
	}
	return first
}

// counted reports whether the action uses up maxRestarts.
func counted(action jobset.FailurePolicyAction) bool {
	return action == jobset.RestartJobSet || action == jobset.RestartJob
}

// alone reports whether the action makes anew only the Job that failed.
func alone(action jobset.FailurePolicyAction) bool {
	return action == jobset.RestartJob || action == jobset.RestartJobAndIgnoreMaxRestarts
}

// spent is how much of maxRestarts is used up, by restarts of all Jobs and of single
// ones.
func spent(status *jobset.JobSetStatus) int32 {
	sum := int64(status.RestartsCountTowardsMax)
	for _, entry := range status.ReplicatedJobsStatus {
		for _, count := range entry.JobRestartsCountTowardsMax {
			sum += int64(count)
		}
	}
	return int32(min(sum, 1<<31-1))
}

// successMayBeUndone reports whether a failure to come may have Jobs run again that have
// succeeded. Once it may not it never will: rules do not change, and what is spent stays
// spent.
func successMayBeUndone(js *jobset.JobSet) bool {
	policy := js.Spec.FailurePolicy
	if policy == nil {
		return false
	}
	left := spent(&js.Status) < policy.MaxRestarts
	for _, rule := range policy.Rules {
		if rule.Action == jobset.RestartJobSetAndIgnoreMaxRestarts || rule.Action == jobset.RestartJobSet && left {
			return true
		}
		if len(rule.OnJobFailureReasons)+len(rule.OnJobFailureMessagePatterns)+len(rule.TargetReplicatedJobs) == 0 {
			return false // it is for every failure: nobody asks those after it
		}
	}
	return left
}
