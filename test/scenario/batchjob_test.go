package scenario

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/musterhq/muster/test/scenario/harness"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/api/muster"
)

// batchJob is a Job with so many pods of one GPU each, which run for a while on
// simulated nodes.
func (w *world) batchJob(name, queue string, pods int32, runs time.Duration) *batchv1.Job {
	template := w.gang(name, queue, pods, runs).Spec.ReplicatedJobs[0].Template.Spec
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: w.Namespace}, Spec: template}
	if queue != "" {
		job.Labels = map[string]string{kueue.QueueLabel: queue}
	}
	return job
}

// untilHeld waits until the API server heeds the policy that suspends such Jobs, which
// the operator of this cluster has just installed.
func (w *world) untilHeld(job *batchv1.Job) {
	w.Helper()
	w.UntilHeld(job, true)
}

var running = harness.Running

// endPods has the pods of the Job, so many, end well once all of them run.
func (w *world) endPods(job string, count int) {
	w.Helper()
	var pods []corev1.Pod
	w.UntilPods(fmt.Sprintf("%d pods of %s run", count, job), func(all map[string]corev1.Pod) bool {
		pods = nil
		for _, pod := range all {
			if pod.Labels[batchv1.JobNameLabel] == job && pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp == nil {
				pods = append(pods, pod)
			}
		}
		return len(pods) == count
	})
	for _, pod := range pods {
		w.EndPod(pod, 0)
	}
}

// workloadOf is the Workload of the namespace's only job.
func (w *world) untilOnlyWorkload(what string, holds func(*kueue.Workload) bool) *kueue.Workload {
	w.Helper()
	var found *kueue.Workload
	harness.Until(w.World, &kueue.WorkloadList{}, "the Workload "+what, func(list *kueue.WorkloadList) bool {
		if len(list.Items) == 1 && holds(&list.Items[0]) {
			found = list.Items[0].DeepCopy()
		}
		return found != nil
	})
	return found
}

func exists(*kueue.Workload) bool { return true }

// asMade is what its user has made of a Job, but for suspend, as text.
func userFields(t *testing.T, job *batchv1.Job) string {
	t.Helper()
	spec := job.Spec.DeepCopy()
	spec.Suspend = nil
	text, err := json.MarshalIndent(map[string]any{"labels": job.Labels, "annotations": job.Annotations, "spec": spec}, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// untilRestored waits until the Job is suspended and without an admission, and checks that its user's fields are as
// they were before.
func (w *world) untilRestored(name, before string) {
	w.Helper()
	job := w.UntilJob(name, "is suspended and restored", func(job *batchv1.Job) bool {
		_, noted := job.Annotations[muster.BeforeAdmissionAnnotation]
		return *job.Spec.Suspend && job.Status.Active == 0 && !noted
	})
	if diff := cmp.Diff(before, userFields(w.T, job)); diff != "" {
		w.Errorf("Job %s after its suspension (-before +after):\n%s", name, diff)
	}
}

func TestBatchJobIsHeldFromItsCreationAndRunsOnceAdmitted(t *testing.T) {
	w := newWorld(t)
	w.gpuQueue("gpu", 8)
	job := w.batchJob("job", "gpu", 3, 100*time.Millisecond)
	w.untilHeld(job)
	w.Create(job)
	if !*job.Spec.Suspend || job.Generation != 1 {
		t.Errorf("made with suspend %v, generation %d", *job.Spec.Suspend, job.Generation)
	}
	w.UntilJob("job", "completes", jobCompleted)
	done := w.untilOnlyWorkload("is finished and let go", func(wl *kueue.Workload) bool {
		return meta.IsStatusConditionTrue(wl.Status.Conditions, kueue.WorkloadFinished) && len(wl.Finalizers) == 0
	})
	finished := meta.FindStatusCondition(done.Status.Conditions, kueue.WorkloadFinished)
	if finished.Reason != kueue.WorkloadFinishedReasonSucceeded || finished.Message != "Reached expected number of succeeded pods" {
		t.Errorf("finished: %s: %s", finished.Reason, finished.Message)
	}
}

func TestEvictedBatchJobIsRestored(t *testing.T) {
	w := newWorld(t)
	w.gpuQueue("gpu", 8)
	job := w.batchJob("job", "gpu", 2, time.Hour)
	w.untilHeld(job)
	w.Create(job)
	before := userFields(t, job)
	w.UntilJob("job", "runs", running(2))
	var pods corev1.PodList
	if err := w.Client.List(t.Context(), &pods, client.InNamespace(w.Namespace)); err != nil {
		t.Fatal(err)
	}
	for _, pod := range pods.Items {
		if pod.Labels[kueue.PodSetLabel] != "main" || pod.Spec.NodeSelector["muster.dev/simulated"] != "true" {
			t.Errorf("pod %s has labels %v and selects %v", pod.Name, pod.Labels, pod.Spec.NodeSelector)
		}
	}
	w.Patch(w.untilOnlyWorkload("is there", exists), `{"spec": {"active": false}}`)
	w.untilRestored("job", before)
	idle := w.untilOnlyWorkload("gives its quota back", func(wl *kueue.Workload) bool { return wl.Status.Admission == nil })
	if c := meta.FindStatusCondition(idle.Status.Conditions, kueue.WorkloadRequeued); c == nil || c.Status != metav1.ConditionFalse || c.Reason != kueue.WorkloadDeactivated {
		t.Errorf("Requeued: %+v", c)
	}
	w.Patch(idle, `{"spec": {"active": true}}`)
	w.UntilJob("job", "runs again", running(2))
}

func TestBatchJobIsPartiallyAdmitted(t *testing.T) {
	w := newWorld(t)
	w.gpuQueue("gpu", 2)
	job := w.batchJob("job", "gpu", 4, time.Hour)
	job.Spec.CompletionMode = ptr.To(batchv1.IndexedCompletion)
	job.Annotations = map[string]string{kueue.JobMinParallelismAnnotation: "1", kueue.JobCompletionsEqualParallelismAnnotation: "true"}
	w.untilHeld(job)
	w.Create(job)
	before := userFields(t, job)
	w.UntilJob("job", "runs with two pods", func(job *batchv1.Job) bool {
		return running(2)(job) && *job.Spec.Parallelism == 2 && *job.Spec.Completions == 2
	})
	w.Patch(w.untilOnlyWorkload("is there", exists), `{"spec": {"active": false}}`)
	w.untilOnlyWorkload("gives its quota back", func(wl *kueue.Workload) bool { return wl.Status.Admission == nil })
	if err := w.Client.Get(t.Context(), client.ObjectKeyFromObject(job), job); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, userFields(t, job)); diff != "" {
		t.Errorf("(-before +after):\n%s", diff)
	}
}

func TestUserCannotSuspendAQueuedBatchJob(t *testing.T) {
	w := newWorld(t)
	w.gpuQueue("gpu", 2)
	job := w.batchJob("job", "gpu", 2, time.Hour)
	w.untilHeld(job)
	w.Create(job)
	w.UntilJob("job", "runs", running(2))
	w.Patch(job.DeepCopy(), `{"spec": {"suspend": true}}`)
	w.UntilEvent("job", "QueueDecides")
	w.UntilJob("job", "runs again", running(2))

}

// TestUserCannotStartAPendingBatchJob: the API server does not follow him, so
// that the Job controller never sees a Job that runs.
func TestUserCannotStartAPendingBatchJob(t *testing.T) {
	w := newWorld(t)
	w.gpuQueue("gpu", 2)
	runs, waits := w.batchJob("runs", "gpu", 2, time.Hour), w.batchJob("waits", "gpu", 1, 0)
	w.untilHeld(runs)
	w.Create(runs)
	w.UntilJob("runs", "runs", running(2))
	w.Create(waits)
	start := client.RawPatch("application/merge-patch+json", []byte(`{"spec": {"suspend": false}}`))
	err := wait.PollUntilContextTimeout(w.Context(), 100*time.Millisecond, harness.Patience, true, func(ctx context.Context) (bool, error) {
		tried := waits.DeepCopy()
		err := w.Client.Patch(ctx, tried, start, client.DryRunAll)
		return ptr.Deref(tried.Spec.Suspend, false), err
	})
	if err != nil {
		t.Fatalf("waiting until the policy is heeded: %v", err)
	}
	started := waits.DeepCopy()
	if err := w.Client.Patch(t.Context(), started, start); err != nil {
		t.Fatal(err)
	}
	if !*started.Spec.Suspend || started.Generation != waits.Generation {
		t.Errorf("it was started: suspend %t, generation %d after %d", *started.Spec.Suspend, started.Generation, waits.Generation)
	}
	// The queue starts it all the same when there is room.
	if err := w.Client.Delete(t.Context(), runs, client.PropagationPolicy(metav1.DeletePropagationForeground)); err != nil {
		t.Fatal(err)
	}
	w.UntilJob("waits", "is done", func(job *batchv1.Job) bool { return job.Status.Succeeded == 1 })
}

// TestQuotaOfADeletedBatchJobIsKeptUntilItsPodsHaveEnded: the pods are kept from going, so that what they were like at
// the Workload's end can be seen.
func TestQuotaOfADeletedBatchJobIsKeptUntilItsPodsHaveEnded(t *testing.T) {
	w := newWorld(t)
	w.gpuQueue("gpu", 2)
	job := w.batchJob("job", "gpu", 2, time.Hour)
	w.untilHeld(job)
	w.Create(job)
	w.UntilJob("job", "runs", running(2))
	w.blockDeletion("job")
	defer w.unblockDeletion("job")
	history := w.Record()
	if err := w.Client.Delete(t.Context(), job, client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
		t.Fatal(err)
	}
	if last := history.UntilDeleted("job"); last.DeletionTimestamp.IsZero() || last.Status.Admission == nil {
		t.Errorf("at last it was deleted %v, and held %v: want its quota held to the end", last.DeletionTimestamp, last.Status.Admission)
	}
	var pods corev1.PodList
	if err := w.Client.List(t.Context(), &pods, client.InNamespace(w.Namespace)); err != nil {
		t.Fatal(err)
	}
	for _, pod := range pods.Items {
		if pod.Status.Phase != corev1.PodFailed && pod.Status.Phase != corev1.PodSucceeded {
			t.Errorf("%s is %s, and its quota was given back", pod.Name, pod.Status.Phase)
		}
	}
	if len(pods.Items) != 2 {
		t.Errorf("%d pods are left", len(pods.Items))
	}
}

// testFinalizer keeps a pod from going.
const testFinalizer = "example.com/last"

// hold keeps the pods of a Job from going when they are deleted.
func (w *world) blockDeletion(job string) {
	w.patchPods(job, `{"metadata": {"finalizers": ["`+testFinalizer+`", "batch.kubernetes.io/job-tracking"]}}`)
}

// letGo lets them go.
func (w *world) unblockDeletion(job string) { w.patchPods(job, `{"metadata": {"finalizers": null}}`) }

func (w *world) patchPods(job, patch string) {
	w.Helper()
	var pods corev1.PodList
	if err := w.Client.List(w.Context(), &pods, client.InNamespace(w.Namespace), client.MatchingLabels{batchv1.JobNameLabel: job}); err != nil {
		w.Fatal(err)
	}
	for i := range pods.Items {
		w.Patch(&pods.Items[i], patch)
	}
}

func TestBatchJobUsesItsPrebuiltWorkload(t *testing.T) {
	w := newWorld(t)
	w.gpuQueue("gpu", 2)
	job := w.batchJob("job", "gpu", 2, 0)
	job.Labels[kueue.PrebuiltWorkloadLabel] = "prebuilt"
	w.untilHeld(job)
	w.Create(job)
	w.UntilEvent("job", "PrebuiltWorkloadNotFound")
	w.Create(&kueue.Workload{
		ObjectMeta: metav1.ObjectMeta{Name: "prebuilt", Namespace: w.Namespace},
		Spec: kueue.WorkloadSpec{QueueName: "gpu", PodSets: []kueue.PodSet{{Name: "main", Count: 2,
			Template: w.batchJob("job", "", 2, 0).Spec.Template}}},
	})
	w.UntilJob("job", "completes", jobCompleted)
	taken := w.untilOnlyWorkload("is finished", func(wl *kueue.Workload) bool {
		return meta.IsStatusConditionTrue(wl.Status.Conditions, kueue.WorkloadFinished)
	})
	if owner := metav1.GetControllerOf(taken); owner == nil || owner.Name != "job" {
		t.Errorf("the Workload belongs to %+v", owner)
	}
}

func TestUnqueuedBatchJobUsesTheLocalQueueNamedDefault(t *testing.T) {
	w := newWorld(t)
	free := w.batchJob("free", "", 1, time.Hour)
	free.Spec.Template.Spec.Tolerations = []corev1.Toleration{{Key: "muster.dev/simulated", Operator: corev1.TolerationOpExists}}
	w.Create(free)
	w.UntilJob("free", "runs", running(1))
	w.gpuQueue(muster.DefaultQueue, 8)
	w.untilHeld(w.batchJob("queued", "", 1, 0))
	w.Create(w.batchJob("queued", "", 1, 0))
	w.UntilJob("queued", "completes", jobCompleted)
	if list := w.workloads(); len(list) != 1 {
		t.Errorf("%d Workloads, want one: that which ran before the queue was made is none of its business", len(list))
	}
	w.UntilJob("free", "still runs", running(1))
}
