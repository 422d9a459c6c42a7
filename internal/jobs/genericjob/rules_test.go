package genericjob

import (
	"fmt"
	"strings"
	"testing"

	tensorstack "github.com/musterhq/muster/api/tensorstack/v1beta1"

	"github.com/musterhq/muster/internal/jobs/jobstest"
)

// ends reads pods from a text: "worker-0 ok" has succeeded, "worker-1 3" has failed
// with that exit code, "worker-2" runs.
func ends(text string) []jobstest.Pod {
	var out []jobstest.Pod
	for part := range strings.SplitSeq(text, ",") {
		name, end, _ := strings.Cut(strings.TrimSpace(part), " ")
		p := pod("job-" + name)
		var code int32
		switch {
		case end == "":
			p = p.Running()
		case end == "ok":
			p = p.Ended(0)
		default:
			_, _ = fmt.Sscan(end, &code)
			p = p.Ended(code)
		}
		out = append(out, p)
	}
	return out
}

func TestTheRulesSayHowAJobEnds(t *testing.T) {
	const (
		runs      = ""
		succeeded = tensorstack.SucceededMessage
		hopeless0 = "The job is failed: no success rule can be met any more. Pod[job-worker-0] exited with error code 3"
		notAll    = "The job is failed: without success rules all its replicas have to succeed. Pod[job-worker-0] exited with error code 3"
	)
	two := func() jobBuilder { return newJob().with("worker", 2) }
	three := func() jobBuilder { return newJob().with("master", 1).with("worker", 3) }
	again := tensorstack.RestartPolicy{Policy: tensorstack.RestartOnFailure, Limit: 1}
	for what, test := range map[string]struct {
		job  jobBuilder
		pods string
		want string
	}{
		"no rules, all run":            {two(), "worker-0, worker-1", runs},
		"no rules, one has succeeded":  {two(), "worker-0 ok, worker-1", runs},
		"no rules, all have succeeded": {two(), "worker-0 ok, worker-1 ok", succeeded},
		"no rules, one has failed":     {two(), "worker-0 3, worker-1", notAll},
		"no rules, one has failed and is restarted": {newJob().with("worker", 2, again),
			"worker-0 3, worker-1", runs},
		"no rules, no replicas": {newJob().with("worker", 0), "", succeeded},
		"a success rule is met while others run": {two().succeedsBy(rule("worker", 0)),
			"worker-0 ok, worker-1", succeeded},
		"a success rule is met though another failed": {two().succeedsBy(rule("worker", 0)),
			"worker-0 ok, worker-1 3", succeeded},
		"a success rule as text": {two().succeedsBy(rule("worker", "0")),
			"worker-0 ok, worker-1", succeeded},
		"one of a success rule has not ended": {two().succeedsBy(rule("worker", 0, 1)),
			"worker-0 ok, worker-1", runs},
		"the second success rule is met": {two().succeedsBy(rule("worker", 0), rule("worker", 1)),
			"worker-0, worker-1 ok", succeeded},
		"the first success rule cannot be met, another can": {two().succeedsBy(rule("worker", 0), rule("worker", 1)),
			"worker-0 3, worker-1", runs},
		"no success rule can be met": {two().succeedsBy(rule("worker", 0)),
			"worker-0 3, worker-1", hopeless0},
		"a success rule over types": {three().succeedsBy(newJob().and(rule("master", 0),
			rule("worker", 1))), "master-0 ok, worker-0, worker-1 ok, worker-2", succeeded},
		"a success rule over types, one runs": {three().succeedsBy(newJob().and(rule("master", 0),
			rule("worker", 1))), "master-0, worker-0, worker-1 ok, worker-2", runs},
		"a failure rule is met": {two().failsBy(rule("worker", 0), rule("worker", 1)),
			"worker-0, worker-1 2", `The job is failed with rule: {"worker":["1"]}`},
		"a failure rule over two is met": {three().succeedsBy(rule("master", 0)).failsBy(rule("worker", 0,
			"1")), "master-0, worker-0 2, worker-1 2, worker-2", `The job is failed with rule: {"worker":["0","1"]}`},
		"one of a failure rule has not failed": {three().succeedsBy(rule("master", 0)).failsBy(rule("worker", 0, 1)),
			"master-0, worker-0 2, worker-1, worker-2", runs},
		"one of a failure rule is restarted": {newJob().with("master", 1).with("worker", 3,
			again).succeedsBy(rule("master", 0)).failsBy(rule("worker", 0)), "master-0, worker-0 2, worker-1, worker-2", runs},
		"success goes before failure": {two().succeedsBy(rule("worker", 0)).failsBy(rule("worker", 1)),
			"worker-0 ok, worker-1 2", succeeded},
		"failure rules alone, all have succeeded": {two().failsBy(rule("worker", 0)),
			"worker-0 ok, worker-1 ok", succeeded},
		"failure rules alone, another has failed": {two().failsBy(rule("worker", 1)), "worker-0 3, worker-1", notAll},
		"a replica that is always restarted never ends": {newJob().with("worker", 1,
			tensorstack.RestartPolicy{Policy: tensorstack.RestartAlways, Limit: 1}).succeedsBy(rule("worker", 0)),
			"worker-0 ok", runs},
		"until its budget is used up": {newJob().with("worker", 1,
			tensorstack.RestartPolicy{Policy: tensorstack.RestartAlways}).succeedsBy(rule("worker", 0)),
			"worker-0 ok", succeeded},
	} {
		t.Run(what, func(t *testing.T) {
			var pods []jobstest.Pod
			if test.pods != "" {
				pods = ends(test.pods)
			}
			p := see(t, test.job.GenericJob, unqueued, of(pods...))
			got := runs
			if p.Progress.Outcome != nil {
				got = p.Progress.Outcome.Message
			}
			if got != test.want {
				t.Errorf("it ended with %q, want %q", got, test.want)
			}
			if p.Progress.Outcome != nil && !p.StatusFirst {
				t.Error("what follows from the end may happen before the end is written")
			}
		})
	}
}

func TestTheOutcomeIsFinal(t *testing.T) {
	job := newJob().with("worker", 2).succeedsBy(rule("worker", 0))
	first := see(t, job.GenericJob, unqueued, of(ends("worker-0 ok, worker-1")...))
	job = then(first, job)
	for what, pods := range map[string]string{"the other fails": "worker-0 ok, worker-1 3",
		"the pod that counted is gone": "worker-1"} {
		p := see(t, job.GenericJob, unqueued, of(ends(pods)...))
		if p.Progress.Outcome == nil || !p.Progress.Outcome.Succeeded {
			t.Errorf("%s, and the outcome is %+v", what, p.Progress.Outcome)
		}
		if got := then(p, job).Status; got.Phase != tensorstack.JobPhaseSucceeded || len(p.Writes) > 0 {
			t.Errorf("%s: phase %s, writes %v", what, got.Phase, writes(p))
		}
		same(t, "conditions", job.Status.Conditions, then(p, job).Status.Conditions)
	}
}

// TestAJobHoldsItsQuotaWhilePodsRunOn: after the end, with no clean-up.
func TestAJobHoldsItsQuotaWhilePodsRunOn(t *testing.T) {
	job := newJob().with("worker", 2).succeedsBy(rule("worker", 0))
	p := see(t, job.GenericJob, admitted, of(ends("worker-0 ok, worker-1")...))
	if p.Progress.Outcome != nil || !p.Progress.Active {
		t.Errorf("with a pod that runs, its queue is told %+v", p.Progress)
	}
	job = then(p, job)
	p = see(t, job.GenericJob, admitted, of(ends("worker-0 ok, worker-1 ok")...))
	if p.Progress.Outcome == nil || p.Progress.Active {
		t.Errorf("with none, its queue is told %+v", p.Progress)
	}
	p = see(t, job.GenericJob, stopping, of(ends("worker-0 ok, worker-1")...))
	same(t, "writes when it must give the quota back", []string{"delete Pod job-worker-1"}, writes(p))
	if p.Progress.Outcome != nil {
		t.Errorf("while its pod is told to end, its queue is told %+v", p.Progress)
	}
	p = see(t, job.GenericJob, stopping, of(ends("worker-0 ok")...))
	if p.Progress.Outcome == nil {
		t.Errorf("when that is gone, its queue is told %+v", p.Progress)
	}
}
