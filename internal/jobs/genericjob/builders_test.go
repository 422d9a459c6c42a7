package genericjob

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tensorstack "github.com/musterhq/muster/api/tensorstack/v1beta1"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/jobs/jobstest"
)

var (
	now = jobstest.Now
	pod = jobstest.NewPod
	of  = jobstest.Objects
)

// jobBuilder builds a GenericJob ns/job.
type jobBuilder struct{ *tensorstack.GenericJob }

func newJob() jobBuilder {
	return jobBuilder{&tensorstack.GenericJob{ObjectMeta: metav1.ObjectMeta{Name: "job", Namespace: "ns", UID: "job-uid"}}}
}

// with adds a type of replicas.
func (j jobBuilder) with(replicaType string, count int32, restart ...tensorstack.RestartPolicy) jobBuilder {
	spec := tensorstack.ReplicaSpec{Type: replicaType, Replicas: ptr.To(count)}
	if len(restart) > 0 {
		spec.RestartPolicy = restart[0]
	}
	spec.Template.Spec.InitContainers = []corev1.Container{{Name: "fetch"}}
	spec.Template.Spec.Containers = []corev1.Container{
		{Name: "main", Command: []string{"train"}, Args: []string{"--rank=$(rank)"}},
		{Name: "log", Command: []string{"ship"}}}
	j.Spec.ReplicaSpecs = append(j.Spec.ReplicaSpecs, spec)
	return j
}

func (j jobBuilder) succeedsBy(rules ...tensorstack.FinishRule) jobBuilder {
	j.Spec.SuccessRules = rules
	return j
}

func (j jobBuilder) failsBy(rules ...tensorstack.FinishRule) jobBuilder {
	j.Spec.FailureRules = rules
	return j
}

func (j jobBuilder) cleans(policy tensorstack.CleanUpPolicy) jobBuilder {
	j.Spec.CleanUpPolicy = policy
	return j
}

func (j jobBuilder) port(name string, number int32) jobBuilder {
	if j.Spec.Service == nil {
		j.Spec.Service = &tensorstack.ServiceOption{}
	}
	j.Spec.Service.Ports = append(j.Spec.Service.Ports, corev1.ServicePort{Name: name, Port: number})
	return j
}

func (j jobBuilder) mode() *tensorstack.RunMode {
	if j.Spec.RunMode == nil {
		j.Spec.RunMode = &tensorstack.RunMode{}
	}
	return j.Spec.RunMode
}

func (j jobBuilder) paused(is bool, resume ...tensorstack.ResumeSpec) jobBuilder {
	j.mode().Pause = &tensorstack.PauseMode{Enabled: is, ResumeSpecs: resume}
	return j
}

func (j jobBuilder) debugged(specs ...tensorstack.ReplicaDebugSet) jobBuilder {
	j.mode().Debug = &tensorstack.DebugMode{Enabled: true, ReplicaSpecs: specs}
	return j
}

// rule names replicas: rule("worker", 0, "1").
func rule(replicaType string, indices ...any) tensorstack.FinishRule {
	r := tensorstack.FinishRule{}
	for _, index := range indices {
		switch i := index.(type) {
		case int:
			r[replicaType] = append(r[replicaType], intstr.FromInt32(int32(i)))
		case string:
			r[replicaType] = append(r[replicaType], intstr.FromString(i))
		}
	}
	return r
}

func (j jobBuilder) and(r, more tensorstack.FinishRule) tensorstack.FinishRule {
	for replicaType, indices := range more {
		r[replicaType] = indices
	}
	return r
}

var (
	unqueued = jobs.Admission{Grant: jobs.Unqueued}
	waiting  = jobs.Admission{Grant: jobs.Waiting}
	stopping = jobs.Admission{Grant: jobs.Stopping}
	admitted = jobs.Admission{Grant: jobs.Admitted, PodSets: map[string]jobs.PodSetAdmission{}}
)

// see plans, and sees that this is a pure function.
func see(t rapid.TB, job *tensorstack.GenericJob, admission jobs.Admission, children []client.Object) jobs.Plan {
	t.Helper()
	return jobstest.CheckedPlan(t, plan,
		jobs.Seen[*tensorstack.GenericJob]{Job: job, Admission: admission, Children: children, Now: now})
}

// then is the job as the plan would have it.
func then(p jobs.Plan, job jobBuilder) jobBuilder {
	if p.Status == nil {
		return job
	}
	out := job.DeepCopy()
	out.Status = *p.Status.(*tensorstack.GenericJob).Status.DeepCopy()
	return jobBuilder{out}
}

// writes are what a plan writes beside the status, "verb Kind name" each, in order.
var writes = jobstest.Writes

func statusOf(t rapid.TB, p jobs.Plan) tensorstack.GenericJobStatus {
	t.Helper()
	if p.Status == nil {
		t.Fatal("the plan has no status")
	}
	return p.Status.(*tensorstack.GenericJob).Status
}

// conditions are those of a plan's status that are not as in a job that has just begun,
// "Type=Status Reason: message" each.
func conditions(t rapid.TB, p jobs.Plan) []string {
	var out []string
	for _, c := range statusOf(t, p).Conditions {
		out = append(out, fmt.Sprintf("%s=%s %s: %s", c.Type, c.Status, c.Reason, c.Message))
	}
	return out
}

// same reports a difference between lists, where none and an empty one are the same.
func same[V any](t *testing.T, what string, want, got V) {
	t.Helper()
	jobstest.Equal(t, what, want, got)
}
