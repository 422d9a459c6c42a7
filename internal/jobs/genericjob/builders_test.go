package genericjob

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/musterhq/muster/api/muster"
	tensorstack "github.com/musterhq/muster/api/tensorstack/v1beta1"
	"github.com/musterhq/muster/internal/jobs"
)

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// jobBuilder builds a GenericJob ns/job.
type jobBuilder struct{ *tensorstack.GenericJob }

func newJob() jobBuilder {
	return jobBuilder{&tensorstack.GenericJob{ObjectMeta: metav1.ObjectMeta{Name: "job", Namespace: "ns", UID: "job-uid"}}}
}

// with adds a type of replicas.
func (b jobBuilder) with(replicaType string, count int32, restart ...tensorstack.RestartPolicy) jobBuilder {
	spec := tensorstack.ReplicaSpec{Type: replicaType, Replicas: ptr.To(count)}
	if len(restart) > 0 {
		spec.RestartPolicy = restart[0]
	}
	spec.Template.Spec.InitContainers = []corev1.Container{{Name: "fetch"}}
	spec.Template.Spec.Containers = []corev1.Container{
		{Name: "main", Command: []string{"train"}, Args: []string{"--rank=$(rank)"}}, {Name: "log", Command: []string{"ship"}}}
	b.Spec.ReplicaSpecs = append(b.Spec.ReplicaSpecs, spec)
	return b
}

func (b jobBuilder) succeedsBy(rules ...tensorstack.FinishRule) jobBuilder {
	b.Spec.SuccessRules = rules
	return b
}

func (b jobBuilder) failsBy(rules ...tensorstack.FinishRule) jobBuilder {
	b.Spec.FailureRules = rules
	return b
}

func (b jobBuilder) cleans(policy tensorstack.CleanUpPolicy) jobBuilder {
	b.Spec.CleanUpPolicy = policy
	return b
}

func (b jobBuilder) port(name string, number int32) jobBuilder {
	if b.Spec.Service == nil {
		b.Spec.Service = &tensorstack.ServiceOption{}
	}
	b.Spec.Service.Ports = append(b.Spec.Service.Ports, corev1.ServicePort{Name: name, Port: number})
	return b
}

func (b jobBuilder) mode() *tensorstack.RunMode {
	if b.Spec.RunMode == nil {
		b.Spec.RunMode = &tensorstack.RunMode{}
	}
	return b.Spec.RunMode
}

func (b jobBuilder) paused(is bool, resume ...tensorstack.ResumeSpec) jobBuilder {
	b.mode().Pause = &tensorstack.PauseMode{Enabled: is, ResumeSpecs: resume}
	return b
}

func (b jobBuilder) debugged(specs ...tensorstack.ReplicaDebugSet) jobBuilder {
	b.mode().Debug = &tensorstack.DebugMode{Enabled: true, ReplicaSpecs: specs}
	return b
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

func (b jobBuilder) and(r, more tensorstack.FinishRule) tensorstack.FinishRule {
	for replicaType, indices := range more {
		r[replicaType] = indices
	}
	return r
}

// podBuilder builds a pod of the job, an hour old.
type podBuilder struct{ *corev1.Pod }

// pod is that of a replica in its first attempt.
func pod(name string) podBuilder {
	return podBuilder{&corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Name: name, Namespace: "ns", UID: types.UID(name + "-uid"), CreationTimestamp: metav1.NewTime(now.Add(-time.Hour)),
		Annotations: map[string]string{muster.RestartsAnnotation: "0"}}}}
}

func (b podBuilder) attempt(n int) podBuilder {
	b.Annotations[muster.RestartsAnnotation] = strconv.Itoa(n)
	return b
}

func (b podBuilder) running() podBuilder {
	b.Spec.NodeName = "n"
	b.Status.Phase = corev1.PodRunning
	b.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	b.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", State: corev1.ContainerState{
		Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(now.Add(-time.Hour))}}}}
	return b
}

func (b podBuilder) ended(code int32) podBuilder { return b.endedAt(code, now.Add(-time.Minute)) }

func (b podBuilder) endedAt(code int32, at time.Time) podBuilder {
	b.running().Status.Phase = corev1.PodSucceeded
	if code != 0 {
		b.Status.Phase = corev1.PodFailed
	}
	b.Status.Conditions = nil
	b.Status.ContainerStatuses[0].State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, FinishedAt: metav1.NewTime(at)}}
	return b
}

func (b podBuilder) going() podBuilder {
	b.DeletionTimestamp = ptr.To(metav1.NewTime(now.Add(30 * time.Second)))
	b.DeletionGracePeriodSeconds = ptr.To[int64](30)
	return b
}

// of are the pods, and the Services if any.
func of(pods ...podBuilder) []client.Object {
	var out []client.Object
	for _, p := range pods {
		out = append(out, p.Pod)
	}
	return out
}

var (
	unqueued = jobs.Admission{Grant: jobs.Unqueued}
	waiting  = jobs.Admission{Grant: jobs.Waiting}
	stopping = jobs.Admission{Grant: jobs.Stopping}
	admitted = jobs.Admission{Grant: jobs.Admitted, PodSets: map[string]jobs.PodSetAdmission{}}
)

// see plans, and sees that this is a pure function: nothing that it was given is
// changed, and neither another try nor another order of the children changes the
// answer.
func see(t rapid.TB, job *tensorstack.GenericJob, admission jobs.Admission, children []client.Object) jobs.Plan {
	t.Helper()
	seen := jobs.Seen[*tensorstack.GenericJob]{Job: job, Admission: admission, Children: children, Now: now}
	given, before := job.DeepCopy(), make([]client.Object, len(children))
	for i, child := range children {
		before[i] = child.DeepCopyObject().(client.Object)
	}
	got := plan(seen)
	if diff := cmp.Diff(given, job); diff != "" {
		t.Fatalf("the job that was given was changed:\n%s", diff)
	}
	if diff := cmp.Diff(before, children, cmpopts.EquateEmpty()); diff != "" {
		t.Fatalf("the children that were given were changed:\n%s", diff)
	}
	shuffled := slices.Clone(children)
	rand.New(rand.NewPCG(1, 2)).Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
	seen.Children = shuffled
	if diff := cmp.Diff(got, plan(seen), cmp.AllowUnexported(jobs.Write{}), cmpopts.EquateEmpty()); diff != "" {
		t.Fatalf("another order of the children changes the plan:\n%s", diff)
	}
	return got
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
func writes(p jobs.Plan) []string {
	var out []string
	for _, w := range p.Writes {
		kind := "Pod"
		if _, ok := w.Object().(*corev1.Service); ok {
			kind = "Service"
		}
		out = append(out, fmt.Sprintf("%s %s %s", w.Verb(), kind, w.Object().GetName()))
	}
	return out
}

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
func same[T any](t *testing.T, what string, want, got T) {
	t.Helper()
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}
