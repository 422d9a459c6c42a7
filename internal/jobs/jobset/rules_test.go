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

// because gives a failed Job the reason and message of its end.
func (b jobBuilder) because(reason, message string) jobBuilder {
	c := &b.job.Status.Conditions[len(b.job.Status.Conditions)-1]
	c.Reason, c.Message = reason, message
	return b
}

func list(builders ...jobBuilder) []*batchv1.Job {
	var out []*batchv1.Job
	for _, b := range builders {
		out = append(out, b.job)
	}
	return out
}

func TestTheFirstRuleThatMatchesAnyFailedJobDecides(t *testing.T) {
	const backoff, deadline = "BackoffLimitExceeded", "DeadlineExceeded"
	rule := func(action jobset.FailurePolicyAction, name string, reasons, patterns, targets []string) jobset.FailurePolicyRule {
		return jobset.FailurePolicyRule{Name: name, Action: action, OnJobFailureReasons: reasons, OnJobFailureMessagePatterns: patterns, TargetReplicatedJobs: targets}
	}
	early := now.Add(-time.Minute)
	leader := job("leader", 0).failed().because(backoff, "Job has reached the specified backoff limit")
	worker := job("workers", 0).ended(batchv1.JobFailed, early).because(deadline, "Job was active longer than specified deadline")
	for name, tc := range map[string]struct {
		rules  []jobset.FailurePolicyRule
		failed []*batchv1.Job
		want   verdict
	}{
		"without rules all restart, and the Job that failed first is named": {
			nil, list(leader, worker), verdict{jobset.RestartJobSet, "", worker.job}},
		"a rule without conditions is for every failure": {
			[]jobset.FailurePolicyRule{rule(jobset.FailJobSet, "any", nil, nil, nil)}, list(leader, worker), verdict{jobset.FailJobSet, "any", worker.job}},
		"a rule without a name is told by its place": {
			[]jobset.FailurePolicyRule{rule(jobset.FailJobSet, "", []string{"PodFailurePolicy"}, nil, nil), rule(jobset.RestartJob, "", nil, nil, nil)},
			list(leader), verdict{jobset.RestartJob, "failurePolicyRule1", leader.job}},
		"the order of rules goes before that of failures": {
			[]jobset.FailurePolicyRule{rule(jobset.FailJobSet, "one", []string{backoff}, nil, nil), rule(jobset.RestartJob, "two", []string{deadline}, nil, nil)},
			list(leader, worker), verdict{jobset.FailJobSet, "one", leader.job}},
		"of the Jobs that a rule is for, the one that failed first is named": {
			[]jobset.FailurePolicyRule{rule(jobset.RestartJob, "one", []string{backoff, deadline}, nil, nil)}, list(leader, worker), verdict{jobset.RestartJob, "one", worker.job}},
		"a rule for other replicated jobs is none": {
			[]jobset.FailurePolicyRule{rule(jobset.FailJobSet, "one", nil, nil, []string{"leader"})}, list(worker), verdict{jobset.RestartJobSet, "", worker.job}},
		"a rule for another reason is none": {
			[]jobset.FailurePolicyRule{rule(jobset.FailJobSet, "one", []string{backoff}, nil, nil)}, list(worker), verdict{jobset.RestartJobSet, "", worker.job}},
		"a pattern is searched for within the message": {
			[]jobset.FailurePolicyRule{rule(jobset.FailJobSet, "one", nil, []string{"nothing of it", "longer than .* deadline"}, nil)}, list(leader, worker), verdict{jobset.FailJobSet, "one", worker.job}},
		"a pattern that is not found is none": {
			[]jobset.FailurePolicyRule{rule(jobset.FailJobSet, "one", nil, []string{"^longer"}, nil)}, list(worker), verdict{jobset.RestartJobSet, "", worker.job}},
		"reason, message and replicated job must all match": {
			[]jobset.FailurePolicyRule{rule(jobset.FailJobSet, "one", []string{backoff}, []string{"deadline"}, []string{"workers"})}, list(leader, worker), verdict{jobset.RestartJobSet, "", worker.job}},
		"and of the same Job": {
			[]jobset.FailurePolicyRule{rule(jobset.FailJobSet, "one", []string{deadline}, []string{"deadline"}, []string{"workers"})}, list(leader, worker), verdict{jobset.FailJobSet, "one", worker.job}},
		"what is no expression matches nothing": {
			[]jobset.FailurePolicyRule{rule(jobset.FailJobSet, "one", nil, []string{"("}, nil)}, list(leader), verdict{jobset.RestartJobSet, "", leader.job}},
	} {
		t.Run(name, func(t *testing.T) {
			got := judge(&jobset.FailurePolicy{Rules: tc.rules}, tc.failed)
			if got != tc.want {
				t.Errorf("got %s by %q for %s, want %s by %q for %s", got.action, got.rule, got.job.Name, tc.want.action, tc.want.rule, tc.want.job.Name)
			}
		})
	}
	if got := judge(nil, list(leader, worker)); got != (verdict{job: worker.job}) {
		t.Errorf("without a policy: %+v", got)
	}
}

// aRuleMatchesExactly: whatever is in the rule and in the failure, a rule matches exactly
// if each of its lists is empty or has what the failure says.
func aRuleMatchesExactly(t *rapid.T) {
	patterns := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"", "(", "a|b", "^a", "(?i)A+$", "[", "exit code (1|2)"}))
	words := rapid.SampledFrom([]string{"", "a", "b", "BackoffLimitExceeded"})
	messages := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"", "a", "ba", "AA", "exit code 2"}))
	rule := jobset.FailurePolicyRule{
		Action: jobset.FailJobSet, Name: "r",
		OnJobFailureMessagePatterns: rapid.SliceOfN(patterns, 0, 3).Draw(t, "patterns"),
		OnJobFailureReasons:         rapid.SliceOfN(words, 0, 3).Draw(t, "reasons"),
		TargetReplicatedJobs:        rapid.SliceOfN(words, 0, 3).Draw(t, "targets"),
	}
	message, reason, replicated := messages.Draw(t, "message"), words.Draw(t, "reason"), words.Draw(t, "replicated job")
	found := len(rule.OnJobFailureMessagePatterns) == 0
	for _, pattern := range rule.OnJobFailureMessagePatterns {
		if ok, err := regexp.MatchString(pattern, message); ok && err == nil {
			found = true
		}
	}
	want := found && (len(rule.OnJobFailureReasons) == 0 || slices.Contains(rule.OnJobFailureReasons, reason)) &&
		(len(rule.TargetReplicatedJobs) == 0 || slices.Contains(rule.TargetReplicatedJobs, replicated))
	failed := list(job(replicated, 0).failed().because(reason, message))
	got := judge(&jobset.FailurePolicy{Rules: []jobset.FailurePolicyRule{rule}}, failed)
	if matched := got.action == jobset.FailJobSet; matched != want || got.job != failed[0] || matched != (got.rule == "r") {
		t.Errorf("%+v of %+v: %+v, want a match: %v", rule, failed[0].Status.Conditions[0], got, want)
	}
}

func TestARuleMatchesExactly(t *testing.T) { rapid.Check(t, aRuleMatchesExactly) }

func FuzzRules(f *testing.F) { f.Fuzz(rapid.MakeFuzz(aRuleMatchesExactly)) }

func TestWhetherSuccessMayBeUndone(t *testing.T) {
	some := []string{"leader"}
	for name, tc := range map[string]struct {
		max, spent int32
		rules      []jobset.FailurePolicyRule
		want       bool
	}{
		"while restarts are left":                              {2, 1, nil, true},
		"not when they are spent":                              {2, 2, nil, false},
		"by a rule that spends none":                           {0, 0, []jobset.FailurePolicyRule{{Action: jobset.RestartJobSetAndIgnoreMaxRestarts, TargetReplicatedJobs: some}}, true},
		"not by a restart of single Jobs, which did not":       {2, 0, []jobset.FailurePolicyRule{{Action: jobset.RestartJob}}, false},
		"unless other failures restart all":                    {2, 0, []jobset.FailurePolicyRule{{Action: jobset.RestartJob, TargetReplicatedJobs: some}}, true},
		"not after a rule that every failure matches":          {2, 0, []jobset.FailurePolicyRule{{Action: jobset.FailJobSet}, {Action: jobset.RestartJobSetAndIgnoreMaxRestarts}}, false},
		"not by a rule whose restarts are spent":               {1, 1, []jobset.FailurePolicyRule{{Action: jobset.RestartJobSet, TargetReplicatedJobs: some}}, false},
		"a maxRestarts below zero is as zero":                  {-1, 0, nil, false},
		"restarts of single Jobs are spent too, by those of 1": {1, 0, []jobset.FailurePolicyRule{{Action: jobset.RestartJob, TargetReplicatedJobs: some}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			js := newSet().restarts(tc.max, jobset.Recreate).js
			js.Spec.FailurePolicy.Rules, js.Status.RestartsCountTowardsMax = tc.rules, tc.spent
			if got := successMayBeUndone(js); got != tc.want {
				t.Errorf("got %v", got)
			}
		})
	}
	if successMayBeUndone(newSet().js) {
		t.Error("without a policy nothing restarts")
	}
}

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
		jobset.RestartJobSetAndIgnoreMaxRestarts: {"Warning RestartJobSetAndIgnoreMaxRestartsFailurePolicyAction: applying RestartJobSetAndIgnoreMaxRestarts" + suffix,
			[]string{"delete Job js-leader-0", "delete Job js-workers-0", "delete Job js-workers-1"}, 1, 0, nil, nil},
		jobset.RestartJob: {"Warning RestartJobFailurePolicyAction: applying RestartJob" + suffix,
			[]string{"delete Job js-workers-1"}, 0, 0, one, one},
		jobset.RestartJobAndIgnoreMaxRestarts: {"Warning RestartJobAndIgnoreMaxRestartsFailurePolicyAction: applying RestartJobAndIgnoreMaxRestarts" + suffix,
			[]string{"delete Job js-workers-1"}, 0, 0, one, nil},
	} {
		t.Run(string(action), func(t *testing.T) {
			js := newSet().restarts(1, jobset.Recreate).rules(jobset.FailurePolicyRule{Name: "r", Action: action}).js
			p := look(t, js, unqueued, of(job("leader", 0).succeeded(), job("workers", 0).ready(), job("workers", 1).failed()))
			same(t, "writes", tc.deletes, writes(p))
			same(t, "conditions", []string{"RestartingJobSet=True FailurePolicy_r: applying " + string(action) + suffix}, conditions(p))
			same(t, "events", []string{"Warning FailurePolicy_r: applying " + string(action) + suffix, tc.event}, events(p))
			s := statusOf(p)
			workers := s.ReplicatedJobsStatus[0]
			if s.Restarts != tc.restarts || s.RestartsCountTowardsMax != tc.towardsMax || !p.StatusFirst {
				t.Errorf("restarts %d, %d of them counted; status first: %v", s.Restarts, s.RestartsCountTowardsMax, p.StatusFirst)
			}
			same(t, "restarts of Jobs", tc.jobRestarts, workers.JobRestarts)
			same(t, "those that count", tc.jobsTowardsMax, workers.JobRestartsCountTowardsMax)

			// With the budget spent, only what ignores it goes on.
			js.Status.RestartsCountTowardsMax = 1
			p = look(t, js, unqueued, of(job("workers", 1).failed()))
			want := "Failed=True ReachedMaxRestarts: jobset failed due to reaching max number of restarts (first failed job: js-workers-1)"
			if !countsTowardsMax(action) {
				want = "RestartingJobSet=True FailurePolicy_r: applying " + string(action) + suffix
			}
			same(t, "conditions when the budget is spent", []string{want}, conditions(p))
		})
	}
	p := look(t, newSet().restarts(1, jobset.Recreate).rules(jobset.FailurePolicyRule{Action: jobset.FailJobSet}).js, unqueued, of(job("workers", 1).failed()))
	same(t, "FailJobSet", []string{"Failed=True FailJobSetFailurePolicyAction: applying FailJobSet" + suffix}, conditions(p))
}

// rules adds failure rules to the policy.
func (b setBuilder) rules(rules ...jobset.FailurePolicyRule) setBuilder {
	b.js.Spec.FailurePolicy.Rules = rules
	return b
}

func TestJobsThatFailTogetherCountARestartEach(t *testing.T) {
	alone := jobset.FailurePolicyRule{Name: "alone", Action: jobset.RestartJob}
	js := newSet().restarts(2, jobset.Recreate).rules(alone).js
	p := look(t, js, unqueued, of(job("leader", 0).failed(), job("workers", 0).failed(), job("workers", 1).ready()))
	same(t, "writes", []string{"delete Job js-leader-0", "delete Job js-workers-0"}, writes(p))
	if got := restartsSpent(ptrTo(statusOf(p))); got != 2 {
		t.Errorf("%d restarts are spent", got)
	}
	p = look(t, js, unqueued, of(job("leader", 0).failed(), job("workers", 0).failed(), job("workers", 1).failed()))
	same(t, "conditions", []string{
		"RestartingJobSet=False JobSetFailed: jobset failed",
		"Failed=True ReachedMaxRestarts: jobset failed due to reaching max number of restarts (first failed job: js-workers-1)"}, conditions(p))
	same(t, "writes at the end", nil, writes(p))
}

func ptrTo[T any](v T) *T { return &v }

func TestSingleRestartIsCountedOnTheNewJob(t *testing.T) {
	js := newSet().restarts(3, jobset.Recreate).restarted(1).js
	js.Status.ReplicatedJobsStatus = []jobset.ReplicatedJobStatus{{Name: "workers", JobRestarts: []int32{0, 2}}, {Name: "leader"}}
	present := func(name string, index int) jobBuilder { return job(name, index).attempt("1") }
	old := present("workers", 1).failed()
	old.job.Labels[jobset.JobRestartAttemptKey] = "1"
	p := look(t, js, unqueued, of(present("leader", 0).ready(), present("workers", 0).ready(), old))
	same(t, "the old one goes", []string{"delete Job js-workers-1"}, writes(p))
	p = look(t, js, unqueued, of(present("leader", 0).ready(), present("workers", 0).ready()))
	made := createdJob(t, p, "js-workers-1")
	if made.Labels[jobset.JobRestartAttemptKey] != "2" || made.Labels[jobset.RestartAttemptKey] != "1" {
		t.Errorf("labels %v", made.Labels)
	}
	p = look(t, js, unqueued, of(present("leader", 0).ready(), present("workers", 0).ready(), jobBuilder{made}.ready()))
	same(t, "then all is as it should be", nil, writes(p))
}

// TestTamperedFailedJobIsNotRestartedForever: its attempt is unknown, and it counts as outdated once it is being
// deleted.
func TestTamperedFailedJobIsNotRestartedForever(t *testing.T) {
	js := newSet().restarts(1, jobset.Recreate).rules(jobset.FailurePolicyRule{Action: jobset.RestartJobSetAndIgnoreMaxRestarts}).js
	tampered := job("workers", 0).attempt("x").failed()
	p := look(t, js, unqueued, of(tampered))
	same(t, "writes", []string{"delete Job js-workers-0"}, writes(p))
	js.Status = statusOf(p)
	p = look(t, js, unqueued, of(tampered.deleting()))
	if got := statusOf(p).Restarts; got != 1 {
		t.Errorf("%d restarts", got)
	}
}
