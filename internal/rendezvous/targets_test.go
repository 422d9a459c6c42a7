package rendezvous

import (
	"slices"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	breezeml "github.com/musterhq/muster/api/breezeml/v1"
	"github.com/musterhq/muster/internal/rendezvous/protocol"
)

// waits makes the agent of the pod wait for a round, and returns the round if it begins.
func (r *registry) waits(t *testing.T, pod *corev1.Pod) *protocol.Round {
	t.Helper()
	agent := caller{Namespace: "ns", Name: pod.Name, UID: string(pod.UID)}
	request := protocol.Request{State: protocol.Waiting, Join: string(pod.UID), Address: "10.0.0.1", Port: 1}
	found := r.byPod[agent.UID]
	if found == nil {
		t.Fatalf("pod %s is in no rounds", pod.Name)
	}
	found.observe(agent, request, 1)
	answer, _, _ := found.answer(t.Context(), agent, request, 1)
	return answer.Round
}

// TestRoundWaitsForAllWorkersOfATrainingJob: pods that are not created yet are waited for too, as many as the job runs
// with, whether the job or its pods are observed first.
func TestRoundWaitsForAllWorkersOfATrainingJob(t *testing.T) {
	job := &breezeml.TrainingJob{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "job", UID: "job-uid"}}
	job.Status.Stage, job.Status.CurrentSize = breezeml.StageRunning, 2
	own := controlledBy("breezeml.ai/v1", "TrainingJob", "job", "job-uid")
	first, second := newPod("job-worker-0", "1:4", "0", own), newPod("job-worker-1", "1:4", "1", own)
	for _, before := range [][]any{{job, first}, {first, job}} {
		r := newRegistry(fake.NewClientBuilder().Build())
		for _, object := range before {
			r.handler().OnAdd(object, false)
		}
		if part := r.waits(t, first); part != nil {
			t.Errorf("a round of %d begins before the second worker has a pod", part.Size)
		}
		r.handler().OnAdd(second, false)
		if part := r.waits(t, second); part == nil || part.Size != 2 {
			t.Errorf("answer to the second worker = %+v, want a round of both", part)
		}
		for _, object := range []any{first, second, job} {
			r.handler().OnDelete(object)
		}
		if r.kept() > 0 {
			t.Error("state of a deleted job is kept")
		}
	}
}

// TestRoundWaitsForAllPodsOfAJobSet: its Jobs are created one after the other, and each creates its pods.
func TestRoundWaitsForAllPodsOfAJobSet(t *testing.T) {
	r := newRegistry(fake.NewClientBuilder().Build())
	job := func(name string, pods int32) *batchv1.Job {
		job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name),
			OwnerReferences: controlledBy("jobset.x-k8s.io/v1alpha2", "JobSet", "js", "job-uid")}}
		job.Spec.Template.Labels = map[string]string{"muster.dev/rendezvous": "job-uid"}
		job.Spec.Parallelism, job.Spec.Completions = &pods, &pods
		return job
	}
	pod := func(name, owner string) *corev1.Pod {
		pod := newPod(name, "1:4", "", controlledBy("batch/v1", "Job", owner, owner))
		r.handler().OnAdd(pod, false)
		return pod
	}
	a, b := job("js-a-0", 1), job("js-b-0", 2)
	r.handler().OnAdd(a, false)
	r.handler().OnAdd(b, false)
	for _, pod := range []*corev1.Pod{pod("js-a-0-x", "js-a-0"), pod("js-b-0-x", "js-b-0")} {
		if part := r.waits(t, pod); part != nil {
			t.Errorf("a round of %d begins before the last pod exists", part.Size)
		}
	}
	if part := r.waits(t, pod("js-b-0-y", "js-b-0")); part == nil || part.Size != 3 {
		t.Errorf("answer to the last pod = %+v, want a round of three", part)
	}
}

func TestPodsOfJob(t *testing.T) {
	for what, test := range map[string]struct {
		parallelism, completions, succeeded int32
		change                              func(*batchv1.Job)
		want                                int
	}{
		"all at once":       {parallelism: 4, completions: 4, want: 4},
		"one has succeeded": {parallelism: 4, completions: 4, succeeded: 1, want: 4},
		"two at a time":     {parallelism: 2, completions: 4, succeeded: 1, want: 3},
		"any number":        {parallelism: 2, want: 2},
		"suspended": {parallelism: 4, completions: 4,
			change: func(job *batchv1.Job) { job.Spec.Suspend = new(true) }},
		"deleted": {parallelism: 4, completions: 4,
			change: func(job *batchv1.Job) { job.DeletionTimestamp = new(metav1.Now()) }},
		"failed": {parallelism: 4, completions: 4,
			change: hasJobCondition(batchv1.JobFailed, corev1.ConditionTrue)},
		"about to fail": {parallelism: 4, completions: 4,
			change: hasJobCondition(batchv1.JobFailureTarget, corev1.ConditionTrue)},
		"has not failed (yet)": {parallelism: 4, completions: 4,
			change: hasJobCondition(batchv1.JobFailed, corev1.ConditionFalse), want: 4},
	} {
		job := &batchv1.Job{Spec: batchv1.JobSpec{Parallelism: &test.parallelism},
			Status: batchv1.JobStatus{Succeeded: test.succeeded}}
		if test.completions > 0 {
			job.Spec.Completions = &test.completions
		}
		if test.change != nil {
			test.change(job)
		}
		if got := podsOfJob(job); got != test.want {
			t.Errorf("%s: %d pods, want %d", what, got, test.want)
		}
	}
}

func hasJobCondition(kind batchv1.JobConditionType, status corev1.ConditionStatus) func(*batchv1.Job) {
	return func(job *batchv1.Job) {
		job.Status.Conditions = append(job.Status.Conditions, batchv1.JobCondition{Type: kind, Status: status})
	}
}

// TestTargetsFollowTheirOwners: rounds hear of each change of their sum, and of nothing else.
func TestTargetsFollowTheirOwners(t *testing.T) {
	targets := newTargets()
	set := func(owner types.UID, id string, pods int, changed ...string) {
		t.Helper()
		if got := targets.set(owner, id, pods); !slices.Equal(got, changed) {
			t.Errorf("%s with %d in %s: changed %q, want %q", owner, pods, id, got, changed)
		}
	}
	set("a", "x", 2, "x")
	set("b", "x", 3, "x")
	set("b", "x", 3)
	if got := targets.of("x"); got != 5 {
		t.Errorf("x is to have %d pods, want 5", got)
	}
	set("b", "y", 3, "x", "y") // the next attempt of a JobSet
	set("a", "x", 0, "x")
	set("b", "", 0, "y")
	set("c", "z", 0)
	if len(targets.byOwner)+len(targets.byID) > 0 {
		t.Errorf("%v is kept", targets)
	}
}
