package trainingjob

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
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	breezeml "github.com/musterhq/muster/api/breezeml/v1"
	"github.com/musterhq/muster/api/muster"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/replicas"
)

var (
	now      = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	settings = Settings{Group: breezeml.DefaultGroup, PendingTimeout: 5 * time.Minute, Cooldown: 3 * time.Hour}
)

// jobBuilder builds a TrainingJob ns/job, made a minute ago.
type jobBuilder struct{ *breezeml.TrainingJob }

func newJob(least, most int32) jobBuilder {
	b := jobBuilder{&breezeml.TrainingJob{ObjectMeta: metav1.ObjectMeta{
		Name: "job", Namespace: "ns", UID: "job-uid", CreationTimestamp: metav1.NewTime(now.Add(-time.Minute))}}}
	b.Spec.MinSize, b.Spec.MaxSize = ptr.To(least), ptr.To(most)
	b.Spec.ReplicaSpecs.Template.Spec.Containers = []corev1.Container{
		{Name: "log"}, {Name: "trainingjob", Command: []string{"train"}, Ports: []corev1.ContainerPort{{Name: "trainingjob-port", ContainerPort: 23456}}}}
	return b
}

func (b jobBuilder) restarts(policy breezeml.RestartPolicy) jobBuilder {
	b.Spec.ReplicaSpecs.RestartPolicy = policy
	return b
}

func (b jobBuilder) cleans(policy breezeml.CleanPodPolicy) jobBuilder {
	b.Spec.RunPolicy.CleanPodPolicy = policy
	return b
}

func (b jobBuilder) suspended(is bool) jobBuilder {
	out := jobBuilder{b.DeepCopy()}
	out.Spec.RunPolicy.Suspend = &is
	return out
}

// podBuilder builds a pod of the job, an hour old.
type podBuilder struct{ *corev1.Pod }

func pod(index int) podBuilder {
	name := replicas.Name("job", worker, int32(index))
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
	b.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "trainingjob", State: corev1.ContainerState{
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

func (b podBuilder) disrupted() podBuilder {
	b.Status.Conditions = append(b.Status.Conditions, corev1.PodCondition{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue})
	return b
}

func (b podBuilder) going() podBuilder {
	b.DeletionTimestamp = ptr.To(metav1.NewTime(now.Add(30 * time.Second)))
	b.DeletionGracePeriodSeconds = ptr.To[int64](30)
	return b
}

// of are the pods.
func of(pods ...podBuilder) []client.Object {
	var out []client.Object
	for _, p := range pods {
		out = append(out, p.Pod)
	}
	return out
}

var (
	waiting  = jobs.Admission{Grant: jobs.Waiting}
	stopping = jobs.Admission{Grant: jobs.Stopping}
)

func admitted(size int32) jobs.Admission {
	return jobs.Admission{Grant: jobs.Admitted, PodSets: map[string]jobs.PodSetAdmission{worker: {Count: size}}}
}

// see plans, and sees that this is a pure function: nothing that it was given is
// changed, and neither another try nor another order of the children changes the
// answer.
func see(t rapid.TB, at time.Time, job *breezeml.TrainingJob, admission jobs.Admission, children []client.Object) jobs.Plan {
	t.Helper()
	seen := jobs.Seen[*breezeml.TrainingJob]{Job: job, Admission: admission, Children: children, Now: at}
	given, before := job.DeepCopy(), make([]client.Object, len(children))
	for i, child := range children {
		before[i] = child.DeepCopyObject().(client.Object)
	}
	got := plan(settings, seen)
	if diff := cmp.Diff(given, job); diff != "" {
		t.Fatalf("the job that was given was changed:\n%s", diff)
	}
	if diff := cmp.Diff(before, children, cmpopts.EquateEmpty()); diff != "" {
		t.Fatalf("the children that were given were changed:\n%s", diff)
	}
	shuffled := slices.Clone(children)
	rand.New(rand.NewPCG(1, 2)).Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
	seen.Children = shuffled
	sorted := func(p jobs.Plan) jobs.Plan {
		slices.SortFunc(p.Writes, func(a, b jobs.Write) int {
			return slices.Compare([]string{a.Verb(), a.Object().GetName(), fmt.Sprintf("%T", a.Object())}, []string{b.Verb(), b.Object().GetName(), fmt.Sprintf("%T", b.Object())})
		})
		return p
	}
	got = sorted(got)
	if diff := cmp.Diff(got, sorted(plan(settings, seen)), cmp.AllowUnexported(jobs.Write{}), cmpopts.EquateEmpty()); diff != "" {
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
	out.Status = *p.Status.(*breezeml.TrainingJob).Status.DeepCopy()
	return jobBuilder{out}
}

// writes are what a plan writes beside the status, "verb Kind name" each, sorted.
func writes(p jobs.Plan) []string {
	var out []string
	for _, w := range p.Writes {
		kind := "Pod"
		switch w.Object().(type) {
		case *corev1.Service:
			kind = "Service"
		case *breezeml.TrainingJob:
			kind = "TrainingJob"
		}
		out = append(out, fmt.Sprintf("%s %s %s", w.Verb(), kind, w.Object().GetName()))
	}
	slices.Sort(out)
	return out
}

// podsIn are the pods that a plan makes or deletes.
func podsIn(p jobs.Plan) []*corev1.Pod {
	var out []*corev1.Pod
	for _, w := range p.Writes {
		if pod, ok := w.Object().(*corev1.Pod); ok {
			out = append(out, pod)
		}
	}
	return out
}

// events are what a plan tells, "Type Reason: message" each.
func events(p jobs.Plan) []string {
	var out []string
	for _, e := range p.Events {
		out = append(out, fmt.Sprintf("%s %s: %s", e.Type, e.Reason, e.Message))
	}
	return out
}

// stands is where a job stands: "Stage size".
func stands(b jobBuilder) string { return fmt.Sprintf("%s %d", b.Status.Stage, b.Status.CurrentSize) }

// conditions of a job, "Type=Status Reason: message" each.
func conditions(b jobBuilder) []string {
	var out []string
	for _, c := range b.Status.ExecStatus.Conditions {
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
