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

// withAgents requests agents for the JobSet, whose containers get a command.
func withAgents(js *jobset.JobSet) *jobset.JobSet {
	js.Annotations = map[string]string{"muster.dev/inject-agent": "true"}
	for i := range js.Spec.ReplicatedJobs {
		js.Spec.ReplicatedJobs[i].Template.Spec.Template.Spec.Containers[0].Command = []string{"train"}
	}
	return js
}

// createdJobs returns the Jobs that a plan creates for a JobSet without a queue, and the messages of its events.
func createdJobs(js *jobset.JobSet, agent podspec.Agent) (out []*batchv1.Job, events []string) {
	seen := seenOf(js, unqueued, of())
	seen.Facts.Agent = agent
	p := plan(seen)
	for _, w := range p.Writes {
		if job, is := w.Object().(*batchv1.Job); is {
			out = append(out, job)
		}
	}
	for _, e := range p.Events {
		events = append(events, e.Message)
	}
	return out, events
}

// variable returns an environment variable of the first container of the Job's pods.
func variable(job *batchv1.Job, name string) string {
	for _, v := range job.Spec.Template.Spec.Containers[0].Env {
		if v.Name == name {
			return v.Value
		}
	}
	return ""
}

func TestAgentsAreAddedWhereRequested(t *testing.T) {
	list, _ := createdJobs(withAgents(newSet().js), someAgent)
	if len(list) != 3 {
		t.Fatalf("%d Jobs are created, want 3", len(list))
	}
	for _, job := range list {
		c := job.Spec.Template.Spec.Containers[0]
		if !slices.Equal(c.Command, []string{"/var/run/muster/muster-agent", "run", "--", "train"}) {
			t.Errorf("%s runs %q", job.Name, c.Command)
		}
		if got := job.Spec.Template.Annotations["muster.dev/rendezvous-size"]; got != "3:3" {
			t.Errorf("the rounds of %s have the size %q, want 3:3, all pods of the JobSet", job.Name, got)
		}
	}
	one := withAgents(newSet().js)
	one.Spec.ReplicatedJobs[0].Template.Annotations = map[string]string{"muster.dev/inject-agent": "false"}
	list, _ = createdJobs(one, someAgent)
	if got := list[0].Spec.Template.Spec.Containers[0].Command; !slices.Equal(got, []string{"train"}) {
		t.Errorf("the leader, which opted out of agents, runs %q", got)
	}
	if got := list[1].Spec.Template.Annotations["muster.dev/rendezvous-size"]; got != "2:2" {
		t.Errorf("the rounds of the workers have the size %q, want 2:2", got)
	}
}

// TestRoundsOfAJobSetThatRestartsInPlaceAreCountedInItsStatus: the agents have no restart budget and no rendezvous of
// their own, since the JobSet counts the attempts.
func TestRoundsOfAJobSetThatRestartsInPlaceAreCountedInItsStatus(t *testing.T) {
	list, _ := createdJobs(withAgents(newSet().restarts(2, jobset.InPlaceRestart).js), someAgent)
	if got := variable(list[0], "LATTICE_MAX_RESTARTS"); got != "-1" {
		t.Errorf("LATTICE_MAX_RESTARTS = %q, want -1", got)
	}
	if got, there := list[0].Spec.Template.Labels["muster.dev/rendezvous"]; there {
		t.Errorf("the pods have a rendezvous, %q, besides the JobSet's attempts", got)
	}
}

// TestNoJobIsCreatedWithoutItsAgent if the agent cannot be added: the JobSet reports why, and its quota is released.
func TestNoJobIsCreatedWithoutItsAgent(t *testing.T) {
	noCommand := withAgents(newSet().js)
	noCommand.Spec.ReplicatedJobs[1].Template.Spec.Template.Spec.Containers[0].Command = nil
	for why, tc := range map[string]struct {
		js    *jobset.JobSet
		agent podspec.Agent
	}{
		"explicit command": {noCommand, someAgent},
		"serves no agents": {withAgents(newSet().js), podspec.Agent{}},
	} {
		if list, events := createdJobs(tc.js, tc.agent); len(list) != 0 || len(events) != 1 ||
			!strings.Contains(events[0], why) {
			t.Errorf("%d Jobs are created, events %q, want none and one that contains %q", len(list), events, why)
		}
		d := describe(tc.js, jobs.Facts{Agent: tc.agent})
		if d.Mistake == nil || d.Mistake.Reason != jobs.InvalidJob || !strings.Contains(d.Mistake.Message, why) {
			t.Errorf("mistake = %+v, want one that contains %q", d.Mistake, why)
		}
		for grant, admission := range map[string]jobs.Admission{"waiting": waiting, "admitted": admitted} {
			seen := seenOf(tc.js, admission, of(job("leader", 0).suspended()))
			seen.Facts.Agent = tc.agent
			p := plan(seen)
			if c := meta.FindStatusCondition(statusOf(p).Conditions, muster.CannotStartCondition); c == nil ||
				c.Status != metav1.ConditionTrue || !strings.Contains(c.Message, why) || p.StatusCanWait {
				t.Errorf("%s: condition %+v, status can wait: %v; want CannotStart with %q at once", grant, c, p.StatusCanWait, why)
			}
			if !strings.Contains(p.Progress.Refused, why) {
				t.Errorf("%s: Progress.Refused = %q, want %q", grant, p.Progress.Refused, why)
			}
			same(t, grant+": writes", nil, writes(p))
		}
	}
}

// TestOperatorWithoutAgentsStopsNoRunningJob: agents in existing pods need the operator only for a restart.
func TestOperatorWithoutAgentsStopsNoRunningJob(t *testing.T) {
	all := []jobBuilder{job("leader", 0).ready(), job("workers", 0).ready(), job("workers", 1).ready()}
	p := checkedPlan(t, withAgents(newSet().js), admitted, of(all...))
	same(t, "conditions", nil, conditions(p))
	all[0] = job("leader", 0).succeeded().suspended()
	p = checkedPlan(t, withAgents(newSet().js), admitted, of(all...))
	same(t, "conditions with a leader that succeeded while it was suspended", nil, conditions(p))
	p = checkedPlan(t, withAgents(newSet().js), admitted, of(all[1:]...))
	if c := meta.FindStatusCondition(statusOf(p).Conditions, muster.CannotStartCondition); c == nil ||
		p.Progress.Refused != "" {
		t.Errorf("without the leader: condition %+v, Refused %q; want CannotStart, but no release of the quota", c, p.Progress.Refused)
	}
	same(t, "writes", nil, writes(p))
}

func TestCannotStartIsClearedOnceAgentsAreServed(t *testing.T) {
	js := withAgents(newSet().is(muster.CannotStartCondition, metav1.ConditionTrue, jobs.InvalidJob, "no agent").js)
	seen := seenOf(js, unqueued, of())
	seen.Facts.Agent = someAgent
	p := plan(seen)
	same(t, "conditions", []string{"muster.dev/CannotStart=False MayStart: what kept pods from being started has changed"},
		conditions(p))
	if len(p.Writes) != 3 || p.Progress.Refused != "" {
		t.Errorf("writes %v, Refused %q; want 3 creates and no refusal", writes(p), p.Progress.Refused)
	}
}

// TestPodsReportTheProgressOfTheirJobSet: those of a TrainJob report to Trainer, which made the JobSet.
func TestPodsReportTheProgressOfTheirJobSet(t *testing.T) {
	js := newSet().js
	for i := range js.Spec.ReplicatedJobs {
		js.Spec.ReplicatedJobs[i].Template.Spec.Template.Annotations = map[string]string{"muster.dev/progress": "true"}
	}
	list, _ := createdJobs(js, someAgent)
	for _, job := range list {
		if got, want := variable(job, "KUBEFLOW_TRAINER_SERVER_URL"), "https://10.0.0.1:9444/apis/trainer.kubeflow.org/"+
			"v1alpha1/namespaces/"+js.Namespace+"/trainjobs/"+js.Name+"/status"; got != want {
			t.Errorf("%s reports to %q, want %q", job.Name, got, want)
		}
	}
	js.OwnerReferences = []metav1.OwnerReference{{APIVersion: "trainer.kubeflow.org/v1alpha1", Kind: "TrainJob", Name: "t",
		UID: "t", Controller: new(true)}}
	list, _ = createdJobs(js, someAgent)
	for _, job := range list {
		if got := variable(job, "KUBEFLOW_TRAINER_SERVER_URL"); got != "" {
			t.Errorf("%s of a TrainJob reports to %q", job.Name, got)
		}
	}
	list, _ = createdJobs(withAgents(newSet().js), someAgent)
	if got := variable(list[0], "KUBEFLOW_TRAINER_SERVER_TOKEN"); got == "" {
		t.Error("a pod with the agent cannot report")
	}
}
