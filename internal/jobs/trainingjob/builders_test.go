package trainingjob

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	breezeml "github.com/musterhq/muster/api/breezeml/v1"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/jobs/jobstest"
	"github.com/musterhq/muster/internal/replicas"
)

var (
	now      = jobstest.Now
	of       = jobstest.Objects
	settings = Settings{Group: breezeml.DefaultGroup, PendingTimeout: 5 * time.Minute, Cooldown: 3 * time.Hour}
)

// jobBuilder builds the TrainingJob ns/job, created a minute ago.
type jobBuilder struct{ *breezeml.TrainingJob }

// newJob returns a job of from least to most workers, whose second container is the one that trains.
func newJob(least, most int32) jobBuilder {
	b := jobBuilder{&breezeml.TrainingJob{ObjectMeta: metav1.ObjectMeta{
		Name: "job", Namespace: "ns", UID: "job-uid", CreationTimestamp: metav1.NewTime(now.Add(-time.Minute))}}}
	b.Spec.MinSize, b.Spec.MaxSize = ptr.To(least), ptr.To(most)
	b.Spec.ReplicaSpecs.Template.Spec.Containers = []corev1.Container{
		{Name: "log"}, {Name: "trainingjob", Command: []string{"train"},
			Ports: []corev1.ContainerPort{{Name: "trainingjob-port", ContainerPort: 23456}}}}
	return b
}

func (j jobBuilder) restarts(policy breezeml.RestartPolicy) jobBuilder {
	j.Spec.ReplicaSpecs.RestartPolicy = policy
	return j
}

func (j jobBuilder) cleans(policy breezeml.CleanPodPolicy) jobBuilder {
	j.Spec.RunPolicy.CleanPodPolicy = policy
	return j
}

func (j jobBuilder) suspended(is bool) jobBuilder {
	out := jobBuilder{j.DeepCopy()}
	out.Spec.RunPolicy.Suspend = &is
	return out
}

// pod returns the pod of the worker with this index.
func pod(index int) jobstest.Pod {
	return jobstest.NewPod(replicas.Name("job", worker, int32(index)))
}

var (
	waiting  = jobs.Admission{Grant: jobs.Waiting}
	stopping = jobs.Admission{Grant: jobs.Stopping}
)

// admitted returns an admission of this many workers.
func admitted(size int32) jobs.Admission {
	return jobs.Admission{Grant: jobs.Admitted, PodSets: map[string]jobs.PodSetAdmission{worker: {Count: size}}}
}

// checkedPlan returns the plan, and checks that plan is a pure function.
func checkedPlan(t rapid.TB, at time.Time, job *breezeml.TrainingJob, admission jobs.Admission,
	children []client.Object) jobs.Plan {
	t.Helper()
	return jobstest.CheckedPlan(t, func(seen jobs.Seen[*breezeml.TrainingJob]) jobs.Plan { return plan(settings, seen) },
		jobs.Seen[*breezeml.TrainingJob]{Job: job, Admission: admission, Children: children, Now: at})
}

// withStatus returns the job with the status of the plan.
func withStatus(p jobs.Plan, job jobBuilder) jobBuilder {
	if p.Status == nil {
		return job
	}
	out := job.DeepCopy()
	out.Status = *p.Status.(*breezeml.TrainingJob).Status.DeepCopy()
	return jobBuilder{out}
}

// writes returns a plan's writes except that of the status as "verb Kind name", sorted.
func writes(p jobs.Plan) []string { return slices.Sorted(slices.Values(jobstest.Writes(p))) }

// podsIn returns the pods that a plan creates or deletes.
func podsIn(p jobs.Plan) []*corev1.Pod {
	var out []*corev1.Pod
	for _, w := range p.Writes {
		if pod, ok := w.Object().(*corev1.Pod); ok {
			out = append(out, pod)
		}
	}
	return out
}

// events returns the events of a plan as "Type Reason: message".
func events(p jobs.Plan) []string {
	var out []string
	for _, e := range p.Events {
		out = append(out, fmt.Sprintf("%s %s: %s", e.Type, e.Reason, e.Message))
	}
	return out
}

// stageAndSize returns the stage and the current size of a job, "Stage size".
func stageAndSize(b jobBuilder) string {
	return fmt.Sprintf("%s %d", b.Status.Stage, b.Status.CurrentSize)
}

// conditions returns the conditions of a job as "Type=Status Reason: message".
func conditions(b jobBuilder) []string {
	var out []string
	for _, c := range b.Status.ExecStatus.Conditions {
		out = append(out, fmt.Sprintf("%s=%s %s: %s", c.Type, c.Status, c.Reason, c.Message))
	}
	return out
}

// same fails the test if want and got differ; nil and empty are equal.
func same[V any](t *testing.T, what string, want, got V) {
	t.Helper()
	jobstest.Equal(t, what, want, got)
}
