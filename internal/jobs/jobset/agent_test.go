package jobset

import (
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"

	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
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

func TestAgentsAreAddedWhereTheyAreAskedFor(t *testing.T) {
	jobs, _ := made(withAgents(newSet().js), someAgent)
	if len(jobs) != 3 {
		t.Fatalf("%d Jobs are made", len(jobs))
	}
	for _, job := range jobs {
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
	jobs, _ = made(one, someAgent)
	if got := jobs[0].Spec.Template.Spec.Containers[0].Command; !slices.Equal(got, []string{"train"}) {
		t.Errorf("the leader, which wants none, runs %q", got)
	}
	if got := jobs[1].Spec.Template.Annotations["muster.dev/rendezvous-size"]; got != "2:2" {
		t.Errorf("the workers have rounds of %q", got)
	}
}

func TestOfAJobSetThatRestartsInPlaceTheStatusCounts(t *testing.T) {
	jobs, _ := made(withAgents(newSet().restarts(2, jobset.InPlaceRestart).js), someAgent)
	if got := variable(jobs[0], "LATTICE_MAX_RESTARTS"); got != "-1" {
		t.Errorf("the agent's own budget is %q", got)
	}
	if got, there := jobs[0].Spec.Template.Labels["muster.dev/rendezvous"]; there {
		t.Errorf("it has rounds beside its attempts: %q", got)
	}
}

func TestWithoutItsAgentNoJobIsMade(t *testing.T) {
	silent := withAgents(newSet().js)
	silent.Spec.ReplicatedJobs[1].Template.Spec.Template.Spec.Containers[0].Command = nil
	for why, jobs := range map[string]func() ([]*batchv1.Job, []string){
		"explicit command": func() ([]*batchv1.Job, []string) { return made(silent, someAgent) },
		"serves no agents": func() ([]*batchv1.Job, []string) { return made(withAgents(newSet().js), podspec.Agent{}) },
	} {
		if made, told := jobs(); len(made) != 0 || len(told) != 1 || !strings.Contains(told[0], why) {
			t.Errorf("%d Jobs are made, and %q is told, want none and %q", len(made), told, why)
		}
	}
}
