package jobset

import (
	"testing"
	"time"

	"k8s.io/utils/ptr"

	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
	"github.com/musterhq/muster/internal/jobs"
)

// TestLimitOfAJobSet: the deadlines of its Jobs bound it if all have one, begin together and only once.
func TestLimitOfAJobSet(t *testing.T) {
	limited := func(seconds ...int64) setBuilder {
		s := newSet()
		for i, n := range seconds {
			s.js.Spec.ReplicatedJobs[i].Template.Spec.ActiveDeadlineSeconds = ptr.To(n)
		}
		return s
	}
	dependent := limited(60, 120)
	dependent.js.Spec.ReplicatedJobs[1].DependsOn = []jobset.DependsOn{{Name: "leader"}}
	withRules := limited(60, 120).restarts(0, "")
	withRules.js.Spec.FailurePolicy.Rules = []jobset.FailurePolicyRule{{}}
	for name, tc := range map[string]struct {
		set  setBuilder
		want time.Duration
	}{
		"no deadline":               {newSet(), 0},
		"not all":                   {limited(60), 0},
		"all":                       {limited(60, 120), 2 * time.Minute},
		"all, and fails at once":    {limited(60, 120).restarts(0, ""), 2 * time.Minute},
		"restarts":                  {limited(60, 120).restarts(1, ""), 0},
		"restarts by a rule":        {withRules, 0},
		"one after another":         {limited(60, 120).inOrder(), 0},
		"one depends on another":    {dependent, 0},
		"an absurd deadline":        {limited(60, 1<<60), 0},
		"a deadline that is no one": {limited(60, 0), 0},
	} {
		if got := describe(tc.set.js, jobs.Facts{}).Limit; got != tc.want {
			t.Errorf("%s: the limit is %s, want %s", name, got, tc.want)
		}
	}
}
