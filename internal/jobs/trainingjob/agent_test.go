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

// anAgent are the facts of an operator that serves agents.
var anAgent = jobs.Facts{Agent: podspec.Agent{Image: "muster:1", Server: "muster:9444", CA: "pem"}}

// planWithAgent returns the plan of an operator that serves agents, for a job without pods.
func planWithAgent(t *testing.T, job *breezeml.TrainingJob, admission jobs.Admission) jobs.Plan {
	t.Helper()
	return plan(settings, jobs.Seen[*breezeml.TrainingJob]{Job: job, Facts: anAgent, Admission: admission, Now: now})
}

func TestAgentRunsTheCommandOfTheTrainingContainer(t *testing.T) {
	job := newJob(2, 4)
	job.Spec.InjectLattice, job.Spec.Framework, job.Spec.RunPolicy.BackoffLimit = true,
		breezeml.FrameworkGeneric, ptr.To[int32](7)
	job.Spec.ReplicaSpecs.Template.Spec.Containers[1].Args = []string{"--fast"}
	pods := podsIn(planWithAgent(t, job.TrainingJob, admitted(2)))
	if len(pods) != 2 {
		t.Fatalf("%d pods are created, want 2", len(pods))
	}
	spec := pods[1].Spec
	if c := spec.Containers[0]; len(c.Command) != 0 || len(c.Env) != 0 {
		t.Errorf("the other container was changed: %+v", c)
	}
	c := spec.Containers[1]
	if n := len(c.Command); n < 3 || c.Command[n-1] != "train" || !slices.Equal(c.Args, []string{"--fast"}) {
		t.Errorf("the training container runs %v %v, want the agent with its command and arguments", c.Command, c.Args)
	}
	if len(spec.InitContainers) != 1 || spec.InitContainers[0].Image != "muster:1" {
		t.Errorf("init containers = %+v, want one of the agent's image", spec.InitContainers)
	}
	env := map[string]string{}
	for _, e := range c.Env {
		env[e.Name] = e.Value
	}
	for name, want := range map[string]string{"LATTICE_NNODES": "2:4", "LATTICE_RDZV_ID": "job-uid",
		"LATTICE_FRAMEWORK": "generic"} {
		if env[name] != want {
			t.Errorf("variable %s = %q, want %q", name, env[name], want)
		}
	}
	if pods[1].Labels["muster.dev/rendezvous"] != "job-uid" || pods[1].Annotations["muster.dev/rendezvous-index"] != "1" {
		t.Errorf("labels %v, annotations %v, want the rendezvous job-uid and the index 1", pods[1].Labels,
			pods[1].Annotations)
	}
}

// TestAgentIsAsAdmitted: changes of injectLattice and the framework take effect at the next start, like those of the
// template. A worker without the agent among others with it would never take part in a round.
func TestAgentIsAsAdmitted(t *testing.T) {
	set := func(injected bool, framework breezeml.Framework) func(jobBuilder) {
		return func(job jobBuilder) { job.Spec.InjectLattice, job.Spec.Framework = injected, framework }
	}
	with, without := set(true, breezeml.FrameworkGeneric), set(false, breezeml.FrameworkPyTorch)
	for name, tc := range map[string]struct {
		admitted, since func(jobBuilder)
		framework       string // of a worker that is created after the change; "" for no agent
		fails           bool   // whether a failed worker fails the job
	}{
		"agent removed":     {with, without, "generic", false},
		"agent added":       {without, with, "", false},
		"framework changed": {with, set(true, breezeml.FrameworkPyTorch), "generic", false},
	} {
		job := newJob(1, 2).restarts(breezeml.RestartOnFailure)
		job.Spec.ReplicaSpecs.Template.Annotations = map[string]string{muster.AgentFrameworkAnnotation: "forged"}
		tc.admitted(job)
		template := describe(job.TrainingJob, anAgent).PodSets[0].Template
		grant := admitted(2)
		grant.PodSets[worker] = jobs.PodSetAdmission{Count: 2, Template: &template}
		job = withStatus(planWithAgent(t, job.TrainingJob, grant), job)
		tc.since(job)
		grown := podsIn(planWithAgent(t, job.TrainingJob, grant))[1]
		framework := ""
		for _, e := range grown.Spec.Containers[1].Env {
			if e.Name == "LATTICE_FRAMEWORK" {
				framework = e.Value
			}
		}
		if framework != tc.framework || (len(grown.Spec.InitContainers) > 0) != (tc.framework != "") {
			t.Errorf("%s: the new worker has the framework %q and the init containers %v, want the framework %q", name,
				framework, grown.Spec.InitContainers, tc.framework)
		}
		if _, there := grown.Annotations[muster.AgentFrameworkAnnotation]; there {
			t.Errorf("%s: the new worker has the pod set's annotation: %v", name, grown.Annotations)
		}
		p := checkedPlan(t, now, job.TrainingJob, grant, of(pod(0).Running(), pod(1).Ended(3)))
		if failed := outcomeOf(withStatus(p, job).TrainingJob) != nil; failed != tc.fails {
			t.Errorf("%s: a failed worker fails the job: %v, want %v", name, failed, tc.fails)
		}
	}
}

// newWithAgent returns a job of up to this many workers that requests the agent.
func newWithAgent(size int32) jobBuilder {
	job := newJob(1, size)
	job.Spec.InjectLattice = true
	return job
}

// TestJobWhoseAgentCannotBeAddedIsNotQueued. If the operator stopped serving agents after the admission, the job
// returns its quota, unless as many workers run as its minimum.
func TestJobWhoseAgentCannotBeAddedIsNotQueued(t *testing.T) {
	job := newWithAgent(1)
	d := describe(job.TrainingJob, jobs.Facts{})
	if d.Mistake == nil || d.Mistake.Reason != jobs.InvalidJob {
		t.Errorf("without agents: mistake = %+v, want InvalidJob", d.Mistake)
	}
	p := checkedPlan(t, now, job.TrainingJob, admitted(1), nil)
	if len(podsIn(p)) > 0 {
		t.Errorf("without agents: writes %v, want no pods", writes(p))
	}
	if len(p.Events) != 1 || p.Events[0] != *d.Mistake ||
		!strings.HasSuffix(d.Mistake.Message, ". No pods that are to have it are started until then") {
		t.Errorf("once admitted: events %+v, want only the mistake %+v", p.Events, d.Mistake)
	}
	if p.Progress.Refused != d.Mistake.Message {
		t.Errorf("once admitted: Refused = %q, want the mistake", p.Progress.Refused)
	}
	if p := checkedPlan(t, now, newWithAgent(2).TrainingJob, admitted(2),
		of(pod(0).Running())); p.Progress.Refused != "" || len(podsIn(p)) > 0 {
		t.Errorf("with its minimum running: writes %v, Refused %q, want no pods and no refusal", writes(p),
			p.Progress.Refused)
	}
	short := newWithAgent(3)
	short.Spec.MinSize = ptr.To[int32](2)
	if p := checkedPlan(t, now, short.TrainingJob, admitted(3),
		of(pod(0).Running())); p.Progress.Refused != d.Mistake.Message {
		t.Errorf("with less than its minimum running: Refused = %q, want the mistake", p.Progress.Refused)
	}
	if d := describe(job.TrainingJob, anAgent); d.Mistake != nil {
		t.Errorf("with agents: mistake = %+v, want none", d.Mistake)
	}
	job.Spec.ReplicaSpecs.Template.Spec.Volumes = []corev1.Volume{{Name: "muster-agent"}}
	if d := describe(job.TrainingJob, anAgent); d.Mistake == nil {
		t.Error("mistake = nil for a volume with the agent's name")
	}
}

func TestWorkersReportTheProgressOfTheirTrainingJob(t *testing.T) {
	job := newJob(1, 1)
	job.Spec.ReplicaSpecs.Template.Annotations = map[string]string{"muster.dev/progress": "true"}
	pods := podsIn(planWithAgent(t, job.TrainingJob, admitted(1)))
	if len(pods) != 1 {
		t.Fatalf("%d pods are created, want 1", len(pods))
	}
	for _, c := range pods[0].Spec.Containers {
		if len(c.Env) < 3 || c.Env[0].Value !=
			"https://muster:9444/apis/trainer.kubeflow.org/v1alpha1/namespaces/ns/trainjobs/job/status" {
			t.Errorf("%s has the variables %+v, want those to report", c.Name, c.Env)
		}
	}
}
