package trainingjob

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	breezeml "github.com/musterhq/muster/api/breezeml/v1"
	"github.com/musterhq/muster/api/muster"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/podspec"
)

// anAgent is what an operator knows that serves agents.
var anAgent = jobs.Facts{Agent: podspec.Agent{Image: "muster:1", Server: "muster:9444", CA: "pem"}}

func seeWithAgent(t *testing.T, job *breezeml.TrainingJob, admission jobs.Admission) jobs.Plan {
	t.Helper()
	return plan(settings, jobs.Seen[*breezeml.TrainingJob]{Job: job, Facts: anAgent, Admission: admission, Now: now})
}

func TestAgentRunsTheCommandOfTheTrainingContainer(t *testing.T) {
	job := newJob(2, 4)
	job.Spec.InjectLattice, job.Spec.Framework, job.Spec.RunPolicy.BackoffLimit = true, breezeml.FrameworkGeneric, ptr.To[int32](7)
	job.Spec.ReplicaSpecs.Template.Spec.Containers[1].Args = []string{"--fast"}
	pods := podsIn(seeWithAgent(t, job.TrainingJob, admitted(2)))
	if len(pods) != 2 {
		t.Fatalf("%d pods are made", len(pods))
	}
	spec := pods[1].Spec
	if c := spec.Containers[0]; len(c.Command) != 0 || len(c.Env) != 0 {
		t.Errorf("the other container was changed: %+v", c)
	}
	c := spec.Containers[1]
	if n := len(c.Command); n < 3 || c.Command[n-1] != "train" || !slices.Equal(c.Args, []string{"--fast"}) {
		t.Errorf("it runs %v %v", c.Command, c.Args)
	}
	if len(spec.InitContainers) != 1 || spec.InitContainers[0].Image != "muster:1" {
		t.Errorf("its init containers are %+v", spec.InitContainers)
	}
	env := map[string]string{}
	for _, e := range c.Env {
		env[e.Name] = e.Value
	}
	for name, want := range map[string]string{"LATTICE_NNODES": "2:4", "LATTICE_RDZV_ID": "job-uid", "LATTICE_FRAMEWORK": "generic"} {
		if env[name] != want {
			t.Errorf("%s is %q, want %q", name, env[name], want)
		}
	}
	if pods[1].Labels["muster.dev/rendezvous"] != "job-uid" || pods[1].Annotations["muster.dev/rendezvous-index"] != "1" {
		t.Errorf("labels %v, annotations %v", pods[1].Labels, pods[1].Annotations)
	}
}

// TestAgentIsAsAdmitted: changes of injectLattice and the framework take effect at the next start, as those of the
// template do. A worker without the agent among others with it would never take part in a round.
func TestAgentIsAsAdmitted(t *testing.T) {
	says := func(injected bool, framework breezeml.Framework) func(jobBuilder) {
		return func(job jobBuilder) { job.Spec.InjectLattice, job.Spec.Framework = injected, framework }
	}
	with, without := says(true, breezeml.FrameworkGeneric), says(false, breezeml.FrameworkPyTorch)
	for what, test := range map[string]struct {
		admitted, since func(jobBuilder)
		framework       string // that a worker is told that is made meanwhile, "" for no agent
		fails           bool   // whether one worker that fails fails the job
	}{
		"still with it":      {with, without, "generic", true},
		"still without it":   {without, with, "", false},
		"the same framework": {with, says(true, breezeml.FrameworkPyTorch), "generic", true},
	} {
		job := newJob(1, 2).restarts(breezeml.RestartOnFailure)
		job.Spec.ReplicaSpecs.Template.Annotations = map[string]string{muster.AgentFrameworkAnnotation: "forged"}
		test.admitted(job)
		asked := describe(job.TrainingJob, anAgent).PodSets[0].Template
		grant := admitted(2)
		grant.PodSets[worker] = jobs.PodSetAdmission{Count: 2, Template: &asked}
		job = then(seeWithAgent(t, job.TrainingJob, grant), job)
		test.since(job)
		grown := podsIn(seeWithAgent(t, job.TrainingJob, grant))[1]
		framework := ""
		for _, e := range grown.Spec.Containers[1].Env {
			if e.Name == "LATTICE_FRAMEWORK" {
				framework = e.Value
			}
		}
		if framework != test.framework || (len(grown.Spec.InitContainers) > 0) != (test.framework != "") {
			t.Errorf("%s: it is told %q, and has init containers %v", what, framework, grown.Spec.InitContainers)
		}
		if _, there := grown.Annotations[muster.AgentFrameworkAnnotation]; there {
			t.Errorf("%s: its pod bears what is for its queue: %v", what, grown.Annotations)
		}
		p := see(t, now, job.TrainingJob, grant, of(pod(0).Running(), pod(1).Ended(3)))
		if failed := outcome(then(p, job).TrainingJob) != nil; failed != test.fails {
			t.Errorf("%s: a worker that fails has it fail: %v", what, failed)
		}
	}
}

// newWithAgent returns a job of this many workers that asks for the agent.
func newWithAgent(size int32) jobBuilder {
	job := newJob(1, size)
	job.Spec.InjectLattice = true
	return job
}

// TestJobWhoseAgentCannotBeAddedIsNotQueued, or returns its quota if the operator stopped serving agents after its
// admission.
func TestJobWhoseAgentCannotBeAddedIsNotQueued(t *testing.T) {
	job := newWithAgent(1)
	d := describe(job.TrainingJob, jobs.Facts{})
	if d.Mistake == nil || d.Mistake.Reason != jobs.InvalidJob {
		t.Errorf("without an agent its mistake is %+v", d.Mistake)
	}
	p := see(t, now, job.TrainingJob, admitted(1), nil)
	if len(podsIn(p)) > 0 {
		t.Errorf("without an agent it would %v", writes(p))
	}
	if len(p.Events) != 1 || p.Events[0] != *d.Mistake || !strings.HasSuffix(d.Mistake.Message, ". No pods that are to have it are started until then") {
		t.Errorf("once admitted it is told %+v, and by its queue %+v", p.Events, d.Mistake)
	}
	if p.Progress.Refused != d.Mistake.Message {
		t.Errorf("it keeps quota for nothing: it is refused %q", p.Progress.Refused)
	}
	if p := see(t, now, newWithAgent(2).TrainingJob, admitted(2), of(pod(0).Running())); p.Progress.Refused != "" || len(podsIn(p)) > 0 {
		t.Errorf("one of which a worker runs would %v, and is refused %q", writes(p), p.Progress.Refused)
	}
	short := newWithAgent(3)
	short.Spec.MinSize = ptr.To[int32](2)
	if p := see(t, now, short.TrainingJob, admitted(3), of(pod(0).Running())); p.Progress.Refused != d.Mistake.Message {
		t.Errorf("one that has fewer workers than its minimum keeps its quota: it is refused %q", p.Progress.Refused)
	}
	if d := describe(job.TrainingJob, anAgent); d.Mistake != nil {
		t.Errorf("with one its mistake is %+v", d.Mistake)
	}
	job.Spec.ReplicaSpecs.Template.Spec.Volumes = []corev1.Volume{{Name: "muster-agent"}}
	if d := describe(job.TrainingJob, anAgent); d.Mistake == nil {
		t.Error("a volume with the agent's name is no mistake")
	}
}
