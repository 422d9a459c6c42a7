package jobset

import (
	"fmt"
	"regexp"
	"slices"

	batchv1 "k8s.io/api/batch/v1"

	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
)

// verdict is what the failure policy says about a failure.
type verdict struct {
	// action is what to do, "" to fail because there is no policy.
	action jobset.FailurePolicyAction
	// rule is the name of the rule that matched, "" if none did.
	rule string
	// job is the failed Job: the first to fail of those that match the rule.
	job *batchv1.Job
}

// judge returns the verdict of the first rule that matches any of the failed Jobs, of which there must be at least one.
// If no rule matches, all Jobs are recreated.
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

// matcher returns a function that reports whether the rule matches a failed Job: by its replicated job and by the
// reason and message of its failure. Empty lists match everything.
func matcher(rule *jobset.FailurePolicyRule) func(*batchv1.Job) bool {
	matches := messageMatcher(rule.OnJobFailureMessagePatterns)
	return func(job *batchv1.Job) bool {
		why := condition(job, batchv1.JobFailed)
		return anyOr(rule.TargetReplicatedJobs, job.Labels[jobset.ReplicatedJobNameKey]) &&
			anyOr(rule.OnJobFailureReasons, why.Reason) && matches(why.Message)
	}
}

func anyJob(*batchv1.Job) bool { return true }

// anyOr reports whether the list is empty or contains the value.
func anyOr(list []string, value string) bool { return len(list) == 0 || slices.Contains(list, value) }

// messageMatcher returns a function that reports whether a message matches one of the patterns. The API rejects invalid
// patterns; one stored before it did matches nothing.
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

// ruleName returns the name of the rule, or the default name for a rule at this index.
func ruleName(rule *jobset.FailurePolicyRule, index int) string {
	if rule.Name != "" {
		return rule.Name
	}
	return fmt.Sprintf("failurePolicyRule%d", index)
}

// firstFailed returns the Job that failed first among those for which holds returns true, nil if there is none. Ties
// are broken by name.
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

// countsTowardsMax reports whether the action counts against maxRestarts.
func countsTowardsMax(action jobset.FailurePolicyAction) bool {
	return action == jobset.RestartJobSet || action == jobset.RestartJob
}

// restartsSingleJob reports whether the action recreates only the Job that failed.
func restartsSingleJob(action jobset.FailurePolicyAction) bool {
	return action == jobset.RestartJob || action == jobset.RestartJobAndIgnoreMaxRestarts
}

// restartsSpent returns how much of maxRestarts has been used up, by restarts of all Jobs and of single ones.
func restartsSpent(status *jobset.JobSetStatus) int32 {
	sum := int64(status.RestartsCountTowardsMax)
	for _, entry := range status.ReplicatedJobsStatus {
		for _, count := range entry.JobRestartsCountTowardsMax {
			sum += int64(count)
		}
	}
	return int32(min(sum, 1<<31-1))
}

// successMayBeUndone reports whether a later failure may make succeeded Jobs run again. Once it returns false, it stays
// false: rules are immutable, and restarts that were used up stay so.
func successMayBeUndone(js *jobset.JobSet) bool {
	policy := js.Spec.FailurePolicy
	if policy == nil {
		return false
	}
	left := restartsSpent(&js.Status) < policy.MaxRestarts
	for _, rule := range policy.Rules {
		if rule.Action == jobset.RestartJobSetAndIgnoreMaxRestarts || rule.Action == jobset.RestartJobSet && left {
			return true
		}
		if len(rule.OnJobFailureReasons)+len(rule.OnJobFailureMessagePatterns)+len(rule.TargetReplicatedJobs) == 0 {
			return false // it matches every failure: no rule after it is reached
		}
	}
	return left
}
