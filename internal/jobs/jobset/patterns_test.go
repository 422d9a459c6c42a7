package jobset

import (
	"runtime"
	"slices"
	"strings"
	"testing"

	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/jobs/write"
)

// policyOf returns a failure policy that fails the JobSet if one of the patterns matches.
func policyOf(patterns ...string) *jobset.FailurePolicy {
	return &jobset.FailurePolicy{MaxRestarts: 50, Rules: []jobset.FailurePolicyRule{
		{Name: "r", Action: jobset.FailJobSet, OnJobFailureMessagePatterns: patterns}}}
}

// TestPatternsThatTheAPIAcceptsAreUsable: the bounds of the API, 4,096 characters and counts of 512 in all, are within
// those of the operator.
func TestPatternsThatTheAPIAcceptsAreUsable(t *testing.T) {
	for what, text := range map[string]string{
		"letters":          strings.Repeat("a", 256),
		"four-byte runes":  strings.Repeat("\U0001F600", 256),
		"classes":          strings.Repeat(`\pL`, 85),
		"without case":     "(?i)" + strings.Repeat(`[\pL\d]`, 36),
		"other characters": strings.Repeat("[^x]", 64),
		"groups":           strings.Repeat("(a|)", 64),
		"nested groups":    strings.Repeat("(", 127) + "a" + strings.Repeat(")", 127),
		"counts":           strings.Repeat("x{0,16}", 2) + strings.Repeat("a?", 113),
	} {
		different := make([]string, 0, 16)
		for i := range 16 {
			different = append(different, text+strings.Repeat("b", i))
		}
		if _, err := usablePatterns(policyOf(different...)); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestPatternsCostNoMoreThanTheirSize: policies that were stored before the API had its bounds.
func TestPatternsCostNoMoreThanTheirSize(t *testing.T) {
	const most = 256 << 20
	for what, text := range map[string]string{
		"a count of a letter":    strings.Repeat("x{1000}", 146),
		"a count of a class":     strings.Repeat(`\pL{1000}`, 113),
		"nested counts":          strings.Repeat("((a){31}){31}", 78),
		"counts that may be 0":   strings.Repeat("(((a?){9}){9}){9}", 60),
		"classes":                strings.Repeat(`\pL`, 341),
		"a count of a long text": "(" + strings.Repeat("abc", 300) + "){1000}",
	} {
		t.Run(what, func(t *testing.T) {
			policy := policyOf()
			for range 64 { // of one name: it does not matter here
				rule := jobset.FailurePolicyRule{Action: jobset.FailJobSet}
				for i := range 64 {
					rule.OnJobFailureMessagePatterns = append(rule.OnJobFailureMessagePatterns, text+strings.Repeat("b", i))
				}
				policy.Rules = append(policy.Rules, rule)
			}
			failed := list(job("leader", 0).failed().withReason("BackoffLimitExceeded", strings.Repeat("abx ", 64)))
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			verdicts, unusable := judge(policy, failed)
			runtime.ReadMemStats(&after)
			if allocated := after.TotalAlloc - before.TotalAlloc; allocated > most {
				t.Errorf("judging one failure allocates %d MiB, want at most %d", allocated>>20, most>>20)
			}
			if unusable == nil || len(verdicts) != 1 {
				t.Errorf("judge = %v, %v, want one verdict and why a pattern cannot be used", verdicts, unusable)
			}
			if compiled.bytes > mostBytes {
				t.Errorf("the cache holds %d bytes, more than %d", compiled.bytes, mostBytes)
			}
		})
	}
}

// TestUsersLearnOfPatternsThatMatchNothing: the event of the failure names the pattern and the rule.
func TestUsersLearnOfPatternsThatMatchNothing(t *testing.T) {
	for name, text := range map[string]string{"too large": "x{1000}" + strings.Repeat("x{1000}", 10),
		"invalid": "exit (code"} {
		js := newSet().js
		js.Spec.FailurePolicy = policyOf(text)
		made := plan(jobs.Seen[*jobset.JobSet]{Job: js, Now: now, Children: of(job("leader", 0).failed())})
		if !slices.ContainsFunc(made.Events, func(e write.Event) bool {
			return e.Reason == unusablePattern && strings.Contains(e.Message, "of rule r") &&
				strings.Contains(e.Message, text[:10])
		}) {
			t.Errorf("%s: events %+v, want %s", name, made.Events, unusablePattern)
		}
	}
}

// TestAFailureIsJudgedOnce: once the status is written, no operator judges the failure again, not even one that has
// just started.
func TestAFailureIsJudgedOnce(t *testing.T) {
	for _, action := range []jobset.FailurePolicyAction{"", jobset.FailJobSet, jobset.RestartJobSet,
		jobset.RestartJobSetAndIgnoreMaxRestarts, jobset.RestartJob, jobset.RestartJobAndIgnoreMaxRestarts} {
		js := newSet().js
		if action != "" {
			js.Spec.FailurePolicy = policyOf("limit")
			js.Spec.FailurePolicy.Rules[0].Action = action
		}
		failed := of(job("leader", 0).failed().withReason("BackoffLimitExceeded", "limit"),
			job("workers", 1).failed().withReason("BackoffLimitExceeded", "other"))
		made := plan(jobs.Seen[*jobset.JobSet]{Job: js, Now: now, Children: failed})
		if !made.StatusFirst {
			t.Errorf("%q: the status is not written before anything else", action)
		}
		next := newPlanner(jobs.Seen[*jobset.JobSet]{Job: made.Status.(*jobset.JobSet), Now: now, Children: failed})
		if left := len(next.children.failed); left > 0 && !hasOutcome(next.js) {
			t.Errorf("%q: %d failures would be judged again", action, left)
		}
	}
}
