package vcjob

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	volcano "github.com/musterhq/muster/api/volcano/batch/v1alpha1"
	bus "github.com/musterhq/muster/api/volcano/bus/v1alpha1"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/jobs/jobstest"
	"github.com/musterhq/muster/internal/jobs/write"
)

var now = jobstest.Now

// jobBuilder builds a VCJob ns/job.
type jobBuilder struct{ *volcano.Job }

func newJob() jobBuilder {
	return jobBuilder{&volcano.Job{ObjectMeta: metav1.ObjectMeta{Name: "job", Namespace: "ns", UID: "job-uid"},
		Spec: volcano.JobSpec{MaxRetry: 3}}}
}

// with adds a task.
func (j jobBuilder) with(name string, count int32, change ...func(*volcano.TaskSpec)) jobBuilder {
	task := volcano.TaskSpec{Name: name, Replicas: count}
	task.Template.Spec.RestartPolicy = corev1.RestartPolicyNever
	task.Template.Spec.Containers = []corev1.Container{{Name: "main"}}
	for _, f := range change {
		f(&task)
	}
	j.Spec.Tasks = append(j.Spec.Tasks, task)
	return j
}

func (j jobBuilder) needs(pods int32) jobBuilder {
	j.Spec.MinAvailable = pods
	return j
}

func (j jobBuilder) on(event bus.Event, action bus.Action) jobBuilder {
	j.Spec.Policies = append(j.Spec.Policies, volcano.LifecyclePolicy{Event: event, Action: action})
	return j
}

func (j jobBuilder) plugin(name string, arguments ...string) jobBuilder {
	if j.Spec.Plugins == nil {
		j.Spec.Plugins = map[string]volcano.PluginArguments{}
	}
	j.Spec.Plugins[name] = arguments
	return j
}

func (j jobBuilder) is(phase volcano.JobPhase) jobBuilder {
	j.Status.State = volcano.JobState{Phase: phase, Reason: "Before", Message: "before",
		LastTransitionTime: metav1.NewTime(now.Add(-time.Hour))}
	return j
}

func dependsOn(iteration volcano.Iteration, names ...string) func(*volcano.TaskSpec) {
	return func(task *volcano.TaskSpec) { task.DependsOn = &volcano.DependsOn{Name: names, Iteration: iteration} }
}

// podBuilder builds a pod of the job, as package jobstest does.
type podBuilder struct{ *corev1.Pod }

// pod returns the pod of a replica in its first attempt.
func pod(name string) podBuilder { return podBuilder(jobstest.NewPod(name)) }

func (p podBuilder) running() podBuilder { return podBuilder(jobstest.Pod(p).Running()) }

func (p podBuilder) ended(code int32) podBuilder { return podBuilder(jobstest.Pod(p).Ended(code)) }

// evicted has the pod have failed for what befell its node.
func (p podBuilder) evicted() podBuilder { return podBuilder(jobstest.Pod(p).Ended(137).Disrupted()) }

func (p podBuilder) going() podBuilder { return podBuilder(jobstest.Pod(p).Terminating()) }

func command(name string, action bus.Action) *bus.Command {
	return &bus.Command{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns",
		UID: types.UID(name + "-uid")}, Action: action,
		TargetObject: &metav1.OwnerReference{Kind: "Job", Name: "job", UID: "job-uid"}}
}

// of are children.
func of(children ...any) []client.Object {
	var out []client.Object
	for _, c := range children {
		switch c := c.(type) {
		case podBuilder:
			out = append(out, c.Pod)
		case client.Object:
			out = append(out, c)
		}
	}
	return out
}

var waiting = jobs.Admission{Grant: jobs.Waiting, Why: "couldn't assign flavors"}

// admitted grants the tasks so many pods at once: admitted("worker", 2).
func admitted(tasks ...any) jobs.Admission {
	a := jobs.Admission{Grant: jobs.Admitted, PodSets: map[string]jobs.PodSetAdmission{}}
	for i := 0; i < len(tasks); i += 2 {
		n := int32(tasks[i+1].(int))
		a.PodSets[tasks[i].(string)] = jobs.PodSetAdmission{Count: n, Asked: n, Left: n}
	}
	return a
}

// partly returns an admission of one task that asked for so many pods, and has quota for some of them by now.
func partly(task string, asked, count, left int32) jobs.Admission {
	return jobs.Admission{Grant: jobs.Admitted,
		PodSets: map[string]jobs.PodSetAdmission{task: {Asked: asked, Count: count, Left: left}}}
}

// see plans, and sees that this is a pure function.
func see(t rapid.TB, job *volcano.Job, admission jobs.Admission, children []client.Object) jobs.Plan {
	t.Helper()
	return jobstest.CheckedPlan(t, plan,
		jobs.Seen[*volcano.Job]{Job: job, Admission: admission, Children: children, Now: now})
}

// then is the job as the plan would have it.
func then(p jobs.Plan, job jobBuilder) jobBuilder {
	if p.Status == nil {
		return job
	}
	out := job.DeepCopy()
	out.Status = *p.Status.(*volcano.Job).Status.DeepCopy()
	return jobBuilder{out}
}

// writes are what a plan writes beside the status, "verb name" each, in order.
func writes(p jobs.Plan) []string {
	var out []string
	for _, w := range slices.Concat(p.First, p.Writes) {
		what := w.Object().GetName()
		if _, isPod := w.Object().(*corev1.Pod); !isPod {
			what = strings.TrimPrefix(fmt.Sprintf("%T", w.Object()), "*") + " " + what
		}
		out = append(out, string(w.Verb())+" "+what)
	}
	return out
}

// made is the pod of the name that the plan makes.
func made(t *testing.T, p jobs.Plan, name string) *corev1.Pod {
	t.Helper()
	for _, w := range p.Writes {
		if pod, ok := w.Object().(*corev1.Pod); ok && w.Verb() == "create" && pod.Name == name {
			return pod
		}
	}
	t.Fatalf("the plan does not make %s: %q", name, writes(p))
	return nil
}

// state is where the plan has the job stand, "Phase Reason: message".
func state(p jobs.Plan) string {
	if p.Status == nil {
		return "unchanged"
	}
	s := p.Status.(*volcano.Job).Status.State
	return fmt.Sprintf("%s %s: %s", s.Phase, s.Reason, s.Message)
}

// same reports a difference between lists, where none and an empty one are the same.
func same[V any](t *testing.T, what string, want, got V) {
	t.Helper()
	jobstest.Equal(t, what, want, got)
}

func isPod(o client.Object) bool {
	_, is := o.(*corev1.Pod)
	return is
}

// carriedOut has the plan carried out where some objects are refused, and gives the job as it stands then, and the
// reasons of events.
func carriedOut(t *testing.T, p jobs.Plan, job *volcano.Job,
	refusal func(client.Object) error) (*volcano.Job, []string) {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, volcano.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	now := job.DeepCopy()
	api := fake.NewClientBuilder().WithScheme(scheme).WithObjects(now).WithStatusSubresource(now).
		WithInterceptorFuncs(interceptor.Funcs{
			Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
				if err := refusal(o); err != nil {
					return err
				}
				return c.Create(ctx, o, options...)
			},
		}).Build()
	if err := api.Get(t.Context(), client.ObjectKeyFromObject(job), now); err != nil {
		t.Fatal(err)
	}
	if p.Status != nil {
		p.Status.SetResourceVersion(now.ResourceVersion)
	}
	told := &reasons{}
	_ = write.NewExecutor(api, told).Run(t.Context(), now, p.Batch) // what was refused is told by events
	if err := api.Get(t.Context(), client.ObjectKeyFromObject(job), now); err != nil {
		t.Fatal(err)
	}
	return now, told.of
}

// reasons are those of the events that were told.
type reasons struct{ of []string }

// Eventf notes the reason.
func (r *reasons) Eventf(_, _ runtime.Object, _, reason, _, _ string, _ ...any) {
	r.of = append(r.of, reason)
}
