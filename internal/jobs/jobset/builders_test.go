package jobset

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/jobs/write"
)

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// setBuilder builds the JobSet ns/js, with a method for each part.
type setBuilder struct{ js *jobset.JobSet }

// newSet returns a JobSet with one leader Job and two worker Jobs, of one pod each.
func newSet() setBuilder {
	js := &jobset.JobSet{ObjectMeta: metav1.ObjectMeta{Name: "js", Namespace: "ns", UID: "js-uid", ResourceVersion: "1"}}
	return setBuilder{js}.with("leader", 1).with("workers", 2)
}

// with adds a replicated job.
func (s setBuilder) with(name string, replicas int32, dependsOn ...jobset.DependsOn) setBuilder {
	rj := jobset.ReplicatedJob{Name: name, Replicas: replicas, DependsOn: dependsOn}
	rj.Template.Spec.Template.Spec.Containers = []corev1.Container{{Name: "c", Image: "busybox"}}
	s.js.Spec.ReplicatedJobs = append(s.js.Spec.ReplicatedJobs, rj)
	return s
}

func (s setBuilder) suspended() setBuilder { s.js.Spec.Suspend = ptr.To(true); return s }

func (s setBuilder) inOrder() setBuilder {
	s.js.Spec.StartupPolicy = &jobset.StartupPolicy{StartupPolicyOrder: jobset.InOrder}
	return s
}

func (s setBuilder) succeedsBy(operator jobset.Operator, targets ...string) setBuilder {
	s.js.Spec.SuccessPolicy = &jobset.SuccessPolicy{Operator: operator, TargetReplicatedJobs: targets}
	return s
}

func (s setBuilder) restarts(maxRestarts int32, strategy jobset.JobSetRestartStrategy) setBuilder {
	s.js.Spec.FailurePolicy = &jobset.FailurePolicy{MaxRestarts: maxRestarts, RestartStrategy: strategy}
	return s
}

// restarted puts the JobSet in attempt n.
func (s setBuilder) restarted(n int32) setBuilder {
	s.js.Status.Restarts, s.js.Status.RestartsCountTowardsMax = n, n
	return s
}

func (s setBuilder) ttl(seconds int32) setBuilder {
	s.js.Spec.TTLSecondsAfterFinished = ptr.To(seconds)
	return s
}

// is adds a condition that is an hour old.
func (s setBuilder) is(kind jobset.JobSetConditionType, status metav1.ConditionStatus,
	reason, message string) setBuilder {
	s.js.Status.Conditions = append(s.js.Status.Conditions, metav1.Condition{
		Type: string(kind), Status: status, Reason: reason, Message: message,
		LastTransitionTime: metav1.NewTime(now.Add(-time.Hour))})
	return s
}

// jobBuilder builds a Job of the JobSet as the API server returns it.
type jobBuilder struct{ job *batchv1.Job }

// job returns the Job with this index of a replicated job, in attempt 0, before it has pods.
func job(replicated string, index int) jobBuilder {
	return jobBuilder{&batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("js-%s-%d", replicated, index), Namespace: "ns", UID: "u",
			ResourceVersion: "1",
			Labels: map[string]string{jobset.ReplicatedJobNameKey: replicated, jobset.JobIndexKey: strconv.Itoa(index),
				jobset.RestartAttemptKey: "0"}},
		Spec: batchv1.JobSpec{Suspend: ptr.To(false)},
	}}
}

func (j jobBuilder) attempt(n string) jobBuilder {
	j.job.Labels[jobset.RestartAttemptKey] = n
	return j
}
func (j jobBuilder) active() jobBuilder { j.job.Status.Active = 1; return j }
func (j jobBuilder) ready() jobBuilder {
	j.job.Status.Active, j.job.Status.Ready = 1, ptr.To[int32](1)
	return j
}
func (j jobBuilder) suspended() jobBuilder         { j.job.Spec.Suspend = ptr.To(true); return j }
func (j jobBuilder) generation(n int64) jobBuilder { j.job.Generation = n; return j }

// acknowledged adds the condition by which the Job controller has observed a suspension.
func (j jobBuilder) acknowledged() jobBuilder { return j.ended(batchv1.JobSuspended, now) }
func (j jobBuilder) deleting() jobBuilder {
	j.job.DeletionTimestamp = ptr.To(metav1.NewTime(now))
	return j
}
func (j jobBuilder) succeeded() jobBuilder {
	j.job.Status.Succeeded = 1
	return j.ended(batchv1.JobComplete, now)
}

// failing makes the Job one whose failure is decided, and one of whose pods still terminates.
func (j jobBuilder) failing() jobBuilder {
	j.job.Status.Active, j.job.Status.Terminating = 0, ptr.To[int32](1)
	return j.ended(batchv1.JobFailureTarget, now)
}
func (j jobBuilder) failed() jobBuilder { return j.ended(batchv1.JobFailed, now) }
func (j jobBuilder) ended(how batchv1.JobConditionType, at time.Time) jobBuilder {
	j.job.Status.Conditions = append(j.job.Status.Conditions,
		batchv1.JobCondition{Type: how, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(at)})
	return j
}

// service returns the JobSet's Service.
func service() client.Object {
	return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "js", Namespace: "ns", OwnerReferences: ownedByTheSet()}}
}

// of returns the Jobs and the Service, as children of the JobSet.
func of(builders ...jobBuilder) []client.Object {
	out := []client.Object{service()}
	for _, b := range builders {
		out = append(out, b.job)
	}
	return out
}

var (
	unqueued = jobs.Admission{Grant: jobs.Unqueued}
	waiting  = jobs.Admission{Grant: jobs.Waiting}
	stopping = jobs.Admission{Grant: jobs.Stopping}
	admitted = jobs.Admission{Grant: jobs.Admitted, PodSets: map[string]jobs.PodSetAdmission{}}
)

// checkedPlan plans, and checks that plan is a pure function: it modifies none of its arguments, and neither another
// call nor another order of the children changes the result.
func checkedPlan(t rapid.TB, js *jobset.JobSet, admission jobs.Admission, children []client.Object) jobs.Plan {
	t.Helper()
	seen := seenOf(js, admission, children)
	job, before := js.DeepCopy(), make([]client.Object, len(children))
	for i, child := range children {
		before[i] = child.DeepCopyObject().(client.Object)
	}
	got := plan(seen)
	if diff := cmp.Diff(job, js); diff != "" {
		t.Fatalf("plan changed the JobSet (-before +after):\n%s", diff)
	}
	if diff := cmp.Diff(before, children, cmpopts.EquateEmpty()); diff != "" {
		t.Fatalf("plan changed the children (-before +after):\n%s", diff)
	}
	shuffled := slices.Clone(children)
	rand.New(rand.NewPCG(1, 2)).Shuffle(len(shuffled),
		func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
	seen = seenOf(js, admission, shuffled)
	if diff := cmp.Diff(got, plan(seen), cmp.AllowUnexported(write.Write{}), cmpopts.IgnoreUnexported(jobs.Plan{}),
		cmpopts.EquateEmpty()); diff != "" {
		t.Fatalf("the plan depends on the order of the children (-given +shuffled):\n%s", diff)
	}
	return got
}

// seenOf returns what a reconcile sees if only these objects exist, whether the JobSet controls them or not.
func seenOf(js *jobset.JobSet, admission jobs.Admission, objects []client.Object) jobs.Seen[*jobset.JobSet] {
	seen := jobs.Seen[*jobset.JobSet]{Job: js, Admission: admission, Now: now}
	wanted := map[string]bool{}
	for _, o := range related(js) {
		wanted[fmt.Sprintf("%T %s", o, o.GetName())] = true
	}
	for _, o := range objects {
		if _, isJob := o.(*batchv1.Job); isJob || metav1.IsControlledBy(o, js) {
			seen.Children = append(seen.Children, o)
		}
		if wanted[fmt.Sprintf("%T %s", o, o.GetName())] {
			seen.Related = append(seen.Related, o)
		}
	}
	return seen
}

// writes returns a plan's writes except that of the status, in order, as "verb Kind name".
func writes(p jobs.Plan) []string {
	var out []string
	for _, w := range p.Writes {
		kind := "Job"
		switch w.Object().(type) {
		case *corev1.Service:
			kind = "Service"
		case *jobset.JobSet:
			kind = "JobSet"
		case *corev1.PersistentVolumeClaim:
			kind = "PersistentVolumeClaim"
		}
		line := fmt.Sprintf("%s %s %s", w.Verb(), kind, w.Object().GetName())
		if job, ok := w.Object().(*batchv1.Job); ok && w.Verb() != "delete" && *job.Spec.Suspend {
			line += ", suspended"
		}
		out = append(out, line)
	}
	return out
}

// conditions returns the conditions of a plan's status as "Type=Status Reason: message".
func conditions(p jobs.Plan) []string {
	var out []string
	for _, c := range statusOf(p).Conditions {
		out = append(out, fmt.Sprintf("%s=%s %s: %s", c.Type, c.Status, c.Reason, c.Message))
	}
	return out
}

func statusOf(p jobs.Plan) jobset.JobSetStatus { return p.Status.(*jobset.JobSet).Status }

// events returns the events of a plan's writes, and then its own, as "Type Reason: message".
func events(p jobs.Plan) []string {
	var out []string
	add := func(e write.Event) { out = append(out, fmt.Sprintf("%s %s: %s", e.Type, e.Reason, e.Message)) }
	for _, w := range p.Writes {
		if e := w.SuccessEvent(); e != nil {
			add(*e)
		}
	}
	for _, e := range p.Events {
		add(e)
	}
	return out
}

// same fails the test if want and got differ; nil and empty are equal.
func same[T any](t *testing.T, what string, want, got T) {
	t.Helper()
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}
