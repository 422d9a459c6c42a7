package jobset

import (
	"regexp"
	"slices"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"pgregory.net/rapid"

	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
)

// withReason gives the last condition of a Job a reason and a message.
func (j jobBuilder) withReason(reason, message string) jobBuilder {
	c := &j.job.Status.Conditions[len(j.job.Status.Conditions)-1]
	c.Reason, c.Message = reason, message
	return j
}

// list returns the Jobs.
func list(builders ...jobBuilder) []*batchv1.Job {
	var out []*batchv1.Job
	for _, b := range builders {
		out = append(out, b.job)
	}
	return out
}

func TestTheFirstRuleThatMatchesAnyFailedJobDecides(t *testing.T) {
	const backoff, deadline = "BackoffLimitExceeded", "DeadlineExceeded"
	rule := func(action jobset.FailurePolicyAction, name string,
		reasons, patterns, targets []string) jobset.FailurePolicyRule {
		return jobset.FailurePolicyRule{Name: name, Action: action, OnJobFailureReasons: reasons,
			OnJobFailureMessagePatterns: patterns, TargetReplicatedJobs: targets}
	}
	early := now.Add(-time.Minute)
	leader := job("leader", 0).failed().withReason(backoff, "Job has reached the specified backoff limit")
	worker := job("workers", 0).ended(batchv1.JobFailed, early).withReason(deadline,
		"Job was active longer than specified deadline")
	for name, tc := range map[string]struct {
		rules  []jobset.FailurePolicyRule
		failed []*batchv1.Job
		want   verdict
	}{
		"no rules": {
			nil, list(leader, worker), verdict{jobset.RestartJobSet, "", worker.job}},
		"rule without conditions": {
			[]jobset.FailurePolicyRule{rule(jobset.FailJobSet, "any", nil, nil, nil)}, list(leader, worker),
			verdict{jobset.FailJobSet, "any", worker.job}},
		"rule without a name": {
			[]jobset.FailurePolicyRule{rule(jobset.FailJobSet, "", []string{"PodFailurePolicy"}, nil, nil),
				rule(jobset.RestartJob, "", nil, nil, nil)},
			list(leader), verdict{jobset.RestartJob, "failurePolicyRule1", leader.job}},
		"two matching rules": {
			[]jobset.FailurePolicyRule{rule(jobset.FailJobSet, "one", []string{backoff}, nil, nil),
				rule(jobset.RestartJob, "two", []string{deadline}, nil, nil)},
			list(leader, worker), verdict{jobset.FailJobSet, "one", leader.job}},
		"rule that two failures match, of which the earlier is reported": {
			[]jobset.FailurePolicyRule{rule(jobset.RestartJob, "one", []string{backoff, deadline}, nil, nil)},
			list(leader, worker), verdict{jobset.RestartJob, "one", worker.job}},
		"other replicated job": {
			[]jobset.FailurePolicyRule{rule(jobset.FailJobSet, "one", nil, nil, []string{"leader"})}, list(worker),
			verdict{jobset.RestartJobSet, "", worker.job}},
		"other reason": {
			[]jobset.FailurePolicyRule{rule(jobset.FailJobSet, "one", []string{backoff}, nil, nil)}, list(worker),
			verdict{jobset.RestartJobSet, "", worker.job}},
		"pattern within the message": {
			[]jobset.FailurePolicyRule{rule(jobset.FailJobSet, "one", nil, []string{"nothing of it", "longer than .* deadline"},
				nil)}, list(leader, worker), verdict{jobset.FailJobSet, "one", worker.job}},
		"pattern that does not match": {
			[]jobset.FailurePolicyRule{rule(jobset.FailJobSet, "one", nil, []string{"^longer"}, nil)}, list(worker),
			verdict{jobset.RestartJobSet, "", worker.job}},
		"reason that does not match": {
			[]jobset.FailurePolicyRule{rule(jobset.FailJobSet, "one", []string{backoff}, []string{"deadline"},
				[]string{"workers"})}, list(leader, worker), verdict{jobset.RestartJobSet, "", worker.job}},
		"reason, message and replicated job match": {
			[]jobset.FailurePolicyRule{rule(jobset.FailJobSet, "one", []string{deadline}, []string{"deadline"},
				[]string{"workers"})}, list(leader, worker), verdict{jobset.FailJobSet, "one", worker.job}},
		"invalid pattern": {
			[]jobset.FailurePolicyRule{rule(jobset.FailJobSet, "one", nil, []string{"("}, nil)}, list(leader),
			verdict{jobset.RestartJobSet, "", leader.job}},
	} {
		t.Run(name, func(t *testing.T) {
			verdicts, _ := judge(&jobset.FailurePolicy{Rules: tc.rules}, tc.failed)
			if got := verdicts[0]; got != tc.want {
				t.Errorf("judge = %s by %q for %s, want %s by %q for %s", got.action, got.rule, got.job.Name, tc.want.action,
					tc.want.rule, tc.want.job.Name)
			}
		})
	}
	if got, _ := judge(nil, list(leader, worker)); got[0] != (verdict{job: worker.job}) {
		t.Errorf("without a policy: verdict %+v, want no action for the Job that failed first", got)
	}
}

// checkRuleMatches checks, for an arbitrary rule and failure, that the rule matches exactly if each of its lists is
// empty or contains the failure's value.
func checkRuleMatches(t *rapid.T) {
	patterns := rapid.OneOf(rapid.String(),
		rapid.SampledFrom([]string{"", "(", "a|b", "^a", "(?i)A+$", "[", "exit code (1|2)"}))
	words := rapid.SampledFrom([]string{"", "a", "b", "BackoffLimitExceeded"})
	messages := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"", "a", "ba", "AA", "exit code 2"}))
	rule := jobset.FailurePolicyRule{
		Action: jobset.FailJobSet, Name: "r",
		OnJobFailureMessagePatterns: rapid.SliceOfN(patterns, 0, 3).Draw(t, "patterns"),
		OnJobFailureReasons:         rapid.SliceOfN(words, 0, 3).Draw(t, "reasons"),
		TargetReplicatedJobs:        rapid.SliceOfN(words, 0, 3).Draw(t, "targets"),
	}
	message, reason, replicated := messages.Draw(t, "message"), words.Draw(t, "reason"), words.Draw(t, "replicated job")
	patternMatches := len(rule.OnJobFailureMessagePatterns) == 0
	for _, pattern := range rule.OnJobFailureMessagePatterns {
		if ok, err := regexp.MatchString(pattern, message); ok && err == nil {
			patternMatches = true
		}
	}
	want := patternMatches && (len(rule.OnJobFailureReasons) == 0 || slices.Contains(rule.OnJobFailureReasons, reason)) &&
		(len(rule.TargetReplicatedJobs) == 0 || slices.Contains(rule.TargetReplicatedJobs, replicated))
	failed := list(job(replicated, 0).failed().withReason(reason, message))
	verdicts, _ := judge(&jobset.FailurePolicy{Rules: []jobset.FailurePolicyRule{rule}}, failed)
	got := verdicts[0]
	if matched := got.action == jobset.FailJobSet; matched != want || got.job != failed[0] ||
		matched != (got.rule == "r") {
		t.Errorf("rule %+v, failure %+v: verdict %+v, want a match: %v", rule, failed[0].Status.Conditions[0], got, want)
	}
}

func TestARuleMatchesExactly(t *testing.T) { rapid.Check(t, checkRuleMatches) }

func FuzzRules(f *testing.F) { f.Fuzz(rapid.MakeFuzz(checkRuleMatches)) }

// TestWhetherSuccessMayBeUndone checks whether a restart could run a succeeded Job again.
func TestWhetherSuccessMayBeUndone(t *testing.T) {
	some := []string{"leader"}
	for name, tc := range map[string]struct {
		max, spent int32
		rules      []jobset.FailurePolicyRule
		want       bool
	}{
		"restarts left":    {2, 1, nil, true},
		"no restarts left": {2, 2, nil, false},
		"rule that ignores maxRestarts": {0, 0,
			[]jobset.FailurePolicyRule{{Action: jobset.RestartJobSetAndIgnoreMaxRestarts, TargetReplicatedJobs: some}}, true},
		"rule that restarts single Jobs": {2, 0,
			[]jobset.FailurePolicyRule{{Action: jobset.RestartJob}}, false},
		"rule that restarts single Jobs, for some failures": {2, 0,
			[]jobset.FailurePolicyRule{{Action: jobset.RestartJob, TargetReplicatedJobs: some}}, true},
		"rule after one that every failure matches": {2, 0,
			[]jobset.FailurePolicyRule{{Action: jobset.FailJobSet}, {Action: jobset.RestartJobSetAndIgnoreMaxRestarts}}, false},
		"rule without restarts left": {1, 1,
			[]jobset.FailurePolicyRule{{Action: jobset.RestartJobSet, TargetReplicatedJobs: some}}, false},
		"negative maxRestarts": {-1, 0, nil, false},
		"one restart left, rule that restarts single Jobs": {1, 0,
			[]jobset.FailurePolicyRule{{Action: jobset.RestartJob, TargetReplicatedJobs: some}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			js := newSet().restarts(tc.max, jobset.Recreate).js
			js.Spec.FailurePolicy.Rules, js.Status.RestartsCountTowardsMax = tc.rules, tc.spent
			if got := successMayBeUndone(js); got != tc.want {
				t.Errorf("successMayBeUndone = %v, want %v", got, tc.want)
			}
		})
	}
	if successMayBeUndone(newSet().js) {
		t.Error("successMayBeUndone = true without a failure policy")
	}
}

// TestActions checks what each action of a failure policy writes and counts, with and without restarts left.
func TestActions(t *testing.T) {
	const suffix = " failure policy action (first failed job: js-workers-1)"
	one := []int32{0, 1}
	for action, tc := range map[jobset.FailurePolicyAction]struct {
		event                       string
		deletes                     []string
		restarts, towardsMax        int32
		jobRestarts, jobsTowardsMax []int32
	}{
		jobset.RestartJobSet: {"Warning RestartJobSetFailurePolicyAction: applying RestartJobSet" + suffix,
			[]string{"delete Job js-leader-0", "delete Job js-workers-0", "delete Job js-workers-1"}, 1, 1, nil, nil},
		jobset.RestartJobSetAndIgnoreMaxRestarts: {
			"Warning RestartJobSetAndIgnoreMaxRestartsFailurePolicyAction: applying RestartJobSetAndIgnoreMaxRestarts" + suffix,
			[]string{"delete Job js-leader-0", "delete Job js-workers-0", "delete Job js-workers-1"}, 1, 0, nil, nil},
		jobset.RestartJob: {"Warning RestartJobFailurePolicyAction: applying RestartJob" + suffix,
			[]string{"delete Job js-workers-1"}, 0, 0, one, one},
		jobset.RestartJobAndIgnoreMaxRestarts: {
			"Warning RestartJobAndIgnoreMaxRestartsFailurePolicyAction: applying RestartJobAndIgnoreMaxRestarts" + suffix,
			[]string{"delete Job js-workers-1"}, 0, 0, one, nil},
	} {
		t.Run(string(action), func(t *testing.T) {
			js := newSet().restarts(1, jobset.Recreate).rules(jobset.FailurePolicyRule{Name: "r", Action: action}).js
			p := checkedPlan(t, js, unqueued,
				of(job("leader", 0).succeeded(), job("workers", 0).ready(), job("workers", 1).failed()))
			same(t, "writes", tc.deletes, writes(p))
			same(t, "conditions", []string{"RestartingJobSet=True FailurePolicy_r: applying " + string(action) + suffix},
				conditions(p))
			same(t, "events", []string{"Warning FailurePolicy_r: applying " + string(action) + suffix, tc.event}, events(p))
			s := statusOf(p)
			workers := s.ReplicatedJobsStatus[0]
			if s.Restarts != tc.restarts || s.RestartsCountTowardsMax != tc.towardsMax || !p.StatusFirst {
				t.Errorf("%d restarts, %d of them counted, status first: %v; want %d, %d and true", s.Restarts,
					s.RestartsCountTowardsMax, p.StatusFirst, tc.restarts, tc.towardsMax)
			}
			same(t, "restarts of Jobs", tc.jobRestarts, workers.JobRestarts)
			same(t, "restarts of Jobs that count", tc.jobsTowardsMax, workers.JobRestartsCountTowardsMax)

			// Without restarts left, only actions that ignore maxRestarts restart anything.
			js.Status.RestartsCountTowardsMax = 1
			p = checkedPlan(t, js, unqueued, of(job("workers", 1).failed()))
			want := "Failed=True ReachedMaxRestarts: jobset failed due to reaching max number of restarts (first failed job: js-workers-1)"
			if !countsTowardsMax(action) {
				want = "RestartingJobSet=True FailurePolicy_r: applying " + string(action) + suffix
			}
			same(t, "conditions without restarts left", []string{want}, conditions(p))
		})
	}
	p := checkedPlan(t, newSet().restarts(1, jobset.Recreate).
		rules(jobset.FailurePolicyRule{Action: jobset.FailJobSet}).js, unqueued, of(job("workers", 1).failed()))
	same(t, "FailJobSet", []string{"Failed=True FailJobSetFailurePolicyAction: applying FailJobSet" + suffix},
		conditions(p))
}

// rules sets the rules of the failure policy.
func (s setBuilder) rules(rules ...jobset.FailurePolicyRule) setBuilder {
	s.js.Spec.FailurePolicy.Rules = rules
	return s
}

func TestJobsThatFailTogetherCountARestartEach(t *testing.T) {
	alone := jobset.FailurePolicyRule{Name: "alone", Action: jobset.RestartJob}
	js := newSet().restarts(2, jobset.Recreate).rules(alone).js
	p := checkedPlan(t, js, unqueued, of(job("leader", 0).failed(), job("workers", 0).failed(), job("workers", 1).ready()))
	same(t, "writes", []string{"delete Job js-leader-0", "delete Job js-workers-0"}, writes(p))
	if got := restartsSpent(ptrTo(statusOf(p))); got != 2 {
		t.Errorf("%d restarts are used, want 2", got)
	}
	p = checkedPlan(t, js, unqueued, of(job("leader", 0).failed(), job("workers", 0).failed(), job("workers", 1).failed()))
	same(t, "conditions", []string{
		"RestartingJobSet=False JobSetFailed: jobset failed",
		"Failed=True ReachedMaxRestarts: jobset failed due to reaching max number of restarts (first failed job: js-workers-1)"}, conditions(p))
	same(t, "writes at the end", nil, writes(p))
}

func ptrTo[T any](v T) *T { return &v }

func TestSingleRestartIsCountedOnTheNewJob(t *testing.T) {
	js := newSet().restarts(3, jobset.Recreate).restarted(1).js
	js.Status.ReplicatedJobsStatus = []jobset.ReplicatedJobStatus{{Name: "workers", JobRestarts: []int32{0, 2}},
		{Name: "leader"}}
	current := func(name string, index int) jobBuilder { return job(name, index).attempt("1") }
	failed := current("workers", 1).failed()
	failed.job.Labels[jobset.JobRestartAttemptKey] = "1"
	p := checkedPlan(t, js, unqueued, of(current("leader", 0).ready(), current("workers", 0).ready(), failed))
	same(t, "writes for the failed Job", []string{"delete Job js-workers-1"}, writes(p))
	p = checkedPlan(t, js, unqueued, of(current("leader", 0).ready(), current("workers", 0).ready()))
	created := createdJob(t, p, "js-workers-1")
	if created.Labels[jobset.JobRestartAttemptKey] != "2" || created.Labels[jobset.RestartAttemptKey] != "1" {
		t.Errorf("labels = %v, want restart 2 of the Job in attempt 1", created.Labels)
	}
	p = checkedPlan(t, js, unqueued,
		of(current("leader", 0).ready(), current("workers", 0).ready(), jobBuilder{created}.ready()))
	same(t, "writes once the Job is ready", nil, writes(p))
}

// TestTamperedFailedJobIsNotRestartedForever: a Job with an invalid attempt counts as one of the current attempt, but
// as outdated once it is being deleted.
func TestTamperedFailedJobIsNotRestartedForever(t *testing.T) {
	js := newSet().restarts(1,
		jobset.Recreate).rules(jobset.FailurePolicyRule{Action: jobset.RestartJobSetAndIgnoreMaxRestarts}).js
	tampered := job("workers", 0).attempt("x").failed()
	p := checkedPlan(t, js, unqueued, of(tampered))
	same(t, "writes", []string{"delete Job js-workers-0"}, writes(p))
	js.Status = statusOf(p)
	p = checkedPlan(t, js, unqueued, of(tampered.deleting()))
	if got := statusOf(p).Restarts; got != 1 {
		t.Errorf("%d restarts, want 1", got)
	}
}

// TestAFailedJobIsRestartedAloneWhateverItsLabelsSay: users may change them; the Job's name does not change.
func TestAFailedJobIsRestartedAloneWhateverItsLabelsSay(t *testing.T) {
	for what, labels := range map[string]map[string]string{
		"none":                         {},
		"of another index":             {jobset.ReplicatedJobNameKey: "workers", jobset.JobIndexKey: "0"},
		"of another job":               {jobset.ReplicatedJobNameKey: "leader", jobset.JobIndexKey: "0"},
		"of a job that is absent":      {jobset.ReplicatedJobNameKey: "nobody", jobset.JobIndexKey: "1"},
		"of an index that is too high": {jobset.ReplicatedJobNameKey: "workers", jobset.JobIndexKey: "7"},
	} {
		js := newSet().restarts(3, jobset.Recreate).rules(jobset.FailurePolicyRule{Action: jobset.RestartJob}).js
		failed := job("workers", 1).failed()
		failed.job.Labels = labels
		failed.job.Labels[jobset.RestartAttemptKey] = "0"
		p := checkedPlan(t, js, unqueued, of(job("leader", 0).ready(), job("workers", 0).ready(), failed))
		same(t, "writes, with labels "+what, []string{"delete Job js-workers-1"}, writes(p))
		status := statusOf(p)
		if restarts := status.ReplicatedJobsStatus[0].JobRestarts; status.Restarts != 0 ||
			!slices.Equal(restarts, []int32{0, 1}) {
			t.Errorf("labels %s: %d restarts of the JobSet, %v of the workers, want one of the second worker", what,
				status.Restarts, restarts)
		}
	}
}
