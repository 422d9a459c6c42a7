package jobset

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"

	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
	"github.com/musterhq/muster/internal/jobs"
)

// verdict is what the failure policy says about a failed Job.
type verdict struct {
	// action is what to do, "" to fail because there is no policy.
	action jobset.FailurePolicyAction
	// rule is the name of the rule that matched, "" if none did.
	rule string
	job  *batchv1.Job
}

// judge returns the verdicts about the failed Jobs in the order in which they count: by the first rule that matches the
// Job, the order of rules being that of the policy, and then by the time of the failure and by name. Jobs that no rule
// matches come last; for them, all Jobs are recreated. The error says which pattern of the policy matched nothing because
// it cannot be used.
//
// A verdict ends the JobSet or counts a restart, and its status says so before anything else is done: from then on the
// Job belongs to an earlier attempt, and is not judged again, by this operator or another.
func judge(policy *jobset.FailurePolicy, failed []*batchv1.Job) (out []verdict, unusable error) {
	left := slices.Clone(failed)
	slices.SortFunc(left, func(a, b *batchv1.Job) int {
		return cmp.Or(failedAt(a).Compare(failedAt(b)), cmp.Compare(a.Name, b.Name))
	})
	otherwise := verdict{}
	if policy != nil {
		var patterns [][]*regexp.Regexp
		patterns, unusable = usablePatterns(policy)
		for i := range policy.Rules {
			rule := &policy.Rules[i]
			name := ruleName(rule, i)
			left = slices.DeleteFunc(left, func(job *batchv1.Job) bool {
				does := matches(rule, patterns[i], job)
				if does {
					out = append(out, verdict{action: rule.Action, rule: name, job: job})
				}
				return does
			})
		}
		otherwise.action = jobset.RestartJobSet
	}
	for _, job := range left {
		otherwise.job = job
		out = append(out, otherwise)
	}
	return out, unusable
}

func failedAt(job *batchv1.Job) time.Time {
	return jobs.TrueCondition(job, batchv1.JobFailed).LastTransitionTime.Time
}

// matches reports whether the rule, with these patterns, matches a failed Job: by its replicated job and by the reason and
// message of its failure. Empty lists match everything, but a list of patterns that cannot be used matches nothing.
func matches(rule *jobset.FailurePolicyRule, patterns []*regexp.Regexp, job *batchv1.Job) bool {
	why := jobs.TrueCondition(job, batchv1.JobFailed)
	return anyOr(rule.TargetReplicatedJobs, job.Labels[jobset.ReplicatedJobNameKey]) && anyOr(rule.OnJobFailureReasons, why.Reason) &&
		(len(rule.OnJobFailureMessagePatterns) == 0 ||
			slices.ContainsFunc(patterns, func(p *regexp.Regexp) bool { return p.MatchString(why.Message) }))
}

// anyOr reports whether the list is empty or contains the value.
func anyOr(list []string, value string) bool { return len(list) == 0 || slices.Contains(list, value) }

// ruleName returns the name of the rule, or the default name for a rule at this index.
func ruleName(rule *jobset.FailurePolicyRule, index int) string {
	if rule.Name != "" {
		return rule.Name
	}
	return fmt.Sprintf("failurePolicyRule%d", index)
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
