package jobset

import (
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
	"github.com/musterhq/muster/api/muster"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/podspec"
)

var someAgent = podspec.Agent{Image: "operator", Server: "10.0.0.1:9444", CA: "certificate"}

func withAgents(js *jobset.JobSet) *jobset.JobSet {
	js.Annotations = map[string]string{"muster.dev/inject-agent": "true"}
	for i := range js.Spec.ReplicatedJobs {
		js.Spec.ReplicatedJobs[i].Template.Spec.Template.Spec.Containers[0].Command = []string{"train"}
	}
	return js
}

// made are the Jobs that a plan makes, and what it tells people.
func made(js *jobset.JobSet, agent podspec.Agent) (out []*batchv1.Job, told []string) {
	seen := seenOf(js, unqueued, of())
	seen.Facts.Agent = agent
	p := plan(seen)
	for _, w := range p.Writes {
		if job, is := w.Object().(*batchv1.Job); is {
			out = append(out, job)
		}
	}
	for _, e := range p.Events {
		told = append(told, e.Message)
	}
	return out, told
}

func variable(job *batchv1.Job, name string) string {
	for _, v := range job.Spec.Template.Spec.Containers[0].Env {
		if v.Name == name {
			return v.Value
		}
	}
	return ""
}

func TestAgentsAreAddedWhereRequested(t *testing.T) {
	list, _ := made(withAgents(newSet().js), someAgent)
	if len(list) != 3 {
		t.Fatalf("%d Jobs are made", len(list))
	}
	for _, job := range list {
		c := job.Spec.Template.Spec.Containers[0]
		if !slices.Equal(c.Command, []string{"/var/run/muster/muster-agent", "run", "--", "train"}) {
			t.Errorf("%s runs %q", job.Name, c.Command)
		}
		if got := job.Spec.Template.Annotations["muster.dev/rendezvous-size"]; got != "3:3" {
			t.Errorf("%s has rounds of %q, want all pods of the JobSet", job.Name, got)
		}
	}
	one := withAgents(newSet().js)
	one.Spec.ReplicatedJobs[0].Template.Annotations = map[string]string{"muster.dev/inject-agent": "false"}
	list, _ = made(one, someAgent)
	if got := list[0].Spec.Template.Spec.Containers[0].Command; !slices.Equal(got, []string{"train"}) {
		t.Errorf("the leader, which wants none, runs %q", got)
	}
	if got := list[1].Spec.Template.Annotations["muster.dev/rendezvous-size"]; got != "2:2" {
		t.Errorf("the workers have rounds of %q", got)
	}
}

func TestRoundsOfAJobSetThatRestartsInPlaceAreCountedInItsStatus(t *testing.T) {
	list, _ := made(withAgents(newSet().restarts(2, jobset.InPlaceRestart).js), someAgent)
	if got := variable(list[0], "LATTICE_MAX_RESTARTS"); got != "-1" {
		t.Errorf("the agent's own budget is %q", got)
	}
	if got, there := list[0].Spec.Template.Labels["muster.dev/rendezvous"]; there {
		t.Errorf("it has rounds beside its attempts: %q", got)
	}
}

func TestNoJobIsCreatedWithoutItsAgent(t *testing.T) {
	silent := withAgents(newSet().js)
	silent.Spec.ReplicatedJobs[1].Template.Spec.Template.Spec.Containers[0].Command = nil
	for why, tc := range map[string]struct {
		js    *jobset.JobSet
		agent podspec.Agent
	}{
		"explicit command": {silent, someAgent},
		"serves no agents": {withAgents(newSet().js), podspec.Agent{}},
	} {
		if made, told := made(tc.js, tc.agent); len(made) != 0 || len(told) != 1 || !strings.Contains(told[0], why) {
			t.Errorf("%d Jobs are made, and %q is told, want none and %q", len(made), told, why)
		}
		d := describe(tc.js, jobs.Facts{Agent: tc.agent})
		if d.Mistake == nil || d.Mistake.Reason != jobs.InvalidJob || !strings.Contains(d.Mistake.Message, why) {
			t.Errorf("it queues, with %+v", d.Mistake)
		}
		for grant, admission := range map[string]jobs.Admission{"waiting": waiting, "admitted": admitted} {
			seen := seenOf(tc.js, admission, of(job("leader", 0).suspended()))
			seen.Facts.Agent = tc.agent
			p := plan(seen)
			if c := meta.FindStatusCondition(statusOf(p).Conditions, muster.CannotStartCondition); c == nil || c.Status != metav1.ConditionTrue || !strings.Contains(c.Message, why) || p.StatusCanWait {
				t.Errorf("%s: the status says %+v", grant, c)
			}
			if !strings.Contains(p.Progress.Refused, why) {
				t.Errorf("%s: its queue is told %q", grant, p.Progress.Refused)
			}
			same(t, grant+": writes", nil, writes(p))
		}
	}
}

// TestOperatorWithoutAgentsStopsNoRunningJob: agents in existing pods need the operator only to restart.
func TestOperatorWithoutAgentsStopsNoRunningJob(t *testing.T) {
	all := []jobBuilder{job("leader", 0).ready(), job("workers", 0).ready(), job("workers", 1).ready()}
	p := look(t, withAgents(newSet().js), admitted, of(all...))
	same(t, "conditions", nil, conditions(p))
	p = look(t, withAgents(newSet().js), admitted, of(all[1:]...))
	if c := meta.FindStatusCondition(statusOf(p).Conditions, muster.CannotStartCondition); c == nil || p.Progress.Refused != "" {
		t.Errorf("without the leader the status says %+v, and its queue is told %q", c, p.Progress.Refused)
	}
	same(t, "writes", nil, writes(p))
}

func TestCannotStartIsClearedOnceAgentsAreServed(t *testing.T) {
	js := withAgents(newSet().is(muster.CannotStartCondition, metav1.ConditionTrue, jobs.InvalidJob, "no agent").js)
	seen := seenOf(js, unqueued, of())
	seen.Facts.Agent = someAgent
	p := plan(seen)
	same(t, "conditions", []string{"muster.dev/CannotStart=False MayStart: what kept pods from being started has changed"}, conditions(p))
	if len(p.Writes) != 3 || p.Progress.Refused != "" {
		t.Errorf("writes %v, %q", writes(p), p.Progress.Refused)
	}
}
