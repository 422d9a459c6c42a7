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

// batchJob returns a Job with that many pods of one GPU each, which run for that long on simulated nodes.
func (w *world) batchJob(name, queue string, pods int32, runs time.Duration) *batchv1.Job {
	template := w.gang(name, queue, pods, runs).Spec.ReplicatedJobs[0].Template.Spec
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: w.Namespace}, Spec: template}
	if queue != "" {
		job.Labels = map[string]string{kueue.QueueLabel: queue}
	}
	return job
}

// untilHeld waits until the API server would create the Job suspended: the operator's policy takes effect
// asynchronously.
func (w *world) untilHeld(job *batchv1.Job) {
	w.Helper()
	w.UntilHeld(job, true)
}

var running = harness.Running

// endPods waits until the Job has exactly that many running pods, and lets all of them succeed.
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

// untilOnlyWorkload waits until the condition holds for the namespace's only Workload, and returns it.
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

// userFields returns, as text, the fields of a Job that its user sets, without spec.suspend.
func userFields(t *testing.T, job *batchv1.Job) string {
	t.Helper()
	spec := job.Spec.DeepCopy()
	spec.Suspend = nil
	text, err := json.MarshalIndent(map[string]any{"labels": job.Labels, "annotations": job.Annotations,
		"spec": spec}, "", " ")
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

// TestBatchJobIsHeldFromItsCreationAndRunsOnceAdmitted: the admission policy suspends a queued Job at its creation.
// After its admission it runs, and its end is copied to the Workload, which loses its finalizers.
func TestBatchJobIsHeldFromItsCreationAndRunsOnceAdmitted(t *testing.T) {
	w := newWorld(t)
	w.gpuQueue("gpu", 8)
	job := w.batchJob("job", "gpu", 3, 100*time.Millisecond)
	w.untilHeld(job)
	w.Create(job)
	if !*job.Spec.Suspend || job.Generation != 1 {
		t.Errorf("Job was created with suspend %t and generation %d, want true and 1", *job.Spec.Suspend, job.Generation)
	}
	w.UntilJob("job", "completes", jobCompleted)
	done := w.untilOnlyWorkload("is finished and has no finalizers", func(wl *kueue.Workload) bool {
		return meta.IsStatusConditionTrue(wl.Status.Conditions, kueue.WorkloadFinished) && len(wl.Finalizers) == 0
	})
	finished := meta.FindStatusCondition(done.Status.Conditions, kueue.WorkloadFinished)
	if finished.Reason != kueue.WorkloadFinishedReasonSucceeded ||
		finished.Message != "Reached expected number of succeeded pods" {
		t.Errorf("condition Finished has reason %q and message %q, want Succeeded and the message of the Job",
			finished.Reason, finished.Message)
	}
}

// TestEvictedBatchJobIsRestored: the pods of an admitted Job have the node selector of its flavor. When its Workload is
// deactivated, the Job's template gets back the fields of its user, and the Job runs again after the Workload is
// activated.
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
			t.Errorf("pod %s has labels %v and node selector %v, want pod set main and simulated nodes", pod.Name, pod.Labels,
				pod.Spec.NodeSelector)
		}
	}
	w.Patch(w.untilOnlyWorkload("exists", exists), `{"spec": {"active": false}}`)
	w.untilRestored("job", before)
	idle := w.untilOnlyWorkload("has released its quota",
		func(wl *kueue.Workload) bool { return wl.Status.Admission == nil })
	if c := meta.FindStatusCondition(idle.Status.Conditions, kueue.WorkloadRequeued); c == nil ||
		c.Status != metav1.ConditionFalse || c.Reason != kueue.WorkloadDeactivated {
		t.Errorf("condition Requeued = %+v, want False with reason Deactivated", c)
	}
	w.Patch(idle, `{"spec": {"active": true}}`)
	w.UntilJob("job", "runs again", running(2))
}

// TestBatchJobIsPartiallyAdmitted: a Job with a minimum parallelism runs with as many pods as the quota allows, and
// gets its own parallelism and completions back when it is evicted.
func TestBatchJobIsPartiallyAdmitted(t *testing.T) {
	w := newWorld(t)
	w.gpuQueue("gpu", 2)
	job := w.batchJob("job", "gpu", 4, time.Hour)
	job.Spec.CompletionMode = ptr.To(batchv1.IndexedCompletion)
	job.Annotations = map[string]string{kueue.JobMinParallelismAnnotation: "1",
		kueue.JobCompletionsEqualParallelismAnnotation: "true"}
	w.untilHeld(job)
	w.Create(job)
	before := userFields(t, job)
	w.UntilJob("job", "runs with two pods", func(job *batchv1.Job) bool {
		return running(2)(job) && *job.Spec.Parallelism == 2 && *job.Spec.Completions == 2
	})
	w.Patch(w.untilOnlyWorkload("exists", exists), `{"spec": {"active": false}}`)
	w.untilOnlyWorkload("has released its quota", func(wl *kueue.Workload) bool { return wl.Status.Admission == nil })
	if err := w.Client.Get(t.Context(), client.ObjectKeyFromObject(job), job); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, userFields(t, job)); diff != "" {
		t.Errorf("Job after its eviction (-before +after):\n%s", diff)
	}
}

// TestUserCannotSuspendAQueuedBatchJob: the operator resumes an admitted Job that its user has suspended, and reports
// it with an event.
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

// TestUserCannotStartAPendingBatchJob: the admission policy sets spec.suspend of a Job without admission back to true
// in the same request, so that the Job controller never observes the Job as running.
func TestUserCannotStartAPendingBatchJob(t *testing.T) {
	w := newWorld(t)
	w.gpuQueue("gpu", 2)
	runs, waits := w.batchJob("runs", "gpu", 2, time.Hour), w.batchJob("waits", "gpu", 1, 0)
	w.untilHeld(runs)
	w.Create(runs)
	w.UntilJob("runs", "runs", running(2))
	w.Create(waits)
	start := client.RawPatch("application/merge-patch+json", []byte(`{"spec": {"suspend": false}}`))
	err := wait.PollUntilContextTimeout(w.Context(), 100*time.Millisecond, harness.Patience,
		true, func(ctx context.Context) (bool, error) {
			tried := waits.DeepCopy()
			err := w.Client.Patch(ctx, tried, start, client.DryRunAll)
			return ptr.Deref(tried.Spec.Suspend, false), err
		})
	if err != nil {
		t.Fatalf("waiting until the policy is enforced: %v", err)
	}
	started := waits.DeepCopy()
	if err := w.Client.Patch(t.Context(), started, start); err != nil {
		t.Fatal(err)
	}
	if !*started.Spec.Suspend || started.Generation != waits.Generation {
		t.Errorf("Job has suspend %t and generation %d, want true and the generation %d from before", *started.Spec.Suspend,
			started.Generation, waits.Generation)
	}
	// The policy must not keep the operator from starting the Job once there is quota.
	if err := w.Client.Delete(t.Context(), runs,
		client.PropagationPolicy(metav1.DeletePropagationForeground)); err != nil {
		t.Fatal(err)
	}
	w.UntilJob("waits", "has succeeded", func(job *batchv1.Job) bool { return job.Status.Succeeded == 1 })
}

// TestQuotaOfADeletedBatchJobIsKeptUntilItsPodsHaveEnded: a Workload whose Job is deleted holds its quota until all
// pods of the Job have ended. A finalizer preserves the pods, so that the test can read their phase after the Workload
// is deleted.
func TestQuotaOfADeletedBatchJobIsKeptUntilItsPodsHaveEnded(t *testing.T) {
	w := newWorld(t)
	w.gpuQueue("gpu", 2)
	job := w.batchJob("job", "gpu", 2, time.Hour)
	w.untilHeld(job)
	w.Create(job)
	w.UntilJob("job", "runs", running(2))
	w.blockDeletion("job")
	defer w.unblockDeletion("job")
	history := harness.Record(w.World)
	if err := w.Client.Delete(t.Context(), job, client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
		t.Fatal(err)
	}
	if last := history.UntilDeleted("job"); last.DeletionTimestamp.IsZero() || last.Status.Admission == nil {
		t.Errorf("last state of the Workload has deletionTimestamp %v and admission %v, want both set",
			last.DeletionTimestamp, last.Status.Admission)
	}
	if pods := w.checkPodsEnded(); pods != 2 {
		t.Errorf("%d pods are left, want 2", pods)
	}
}

// checkPodsEnded checks that none of the namespace's pods still runs, and returns their number.
func (w *world) checkPodsEnded() int {
	w.Helper()
	var pods corev1.PodList
	if err := w.Client.List(w.Context(), &pods, client.InNamespace(w.Namespace)); err != nil {
		w.Fatal(err)
	}
	for _, pod := range pods.Items {
		if pod.Status.Phase != corev1.PodFailed && pod.Status.Phase != corev1.PodSucceeded {
			w.Errorf("pod %s is %s after its quota was released, want it to have ended before", pod.Name, pod.Status.Phase)
		}
	}
	return len(pods.Items)
}

// testFinalizer preserves deleted pods.
const testFinalizer = "example.com/last"

// blockDeletion adds testFinalizer to the pods of a Job.
func (w *world) blockDeletion(job string) {
	w.patchPods(job, `{"metadata": {"finalizers": ["`+testFinalizer+`", "batch.kubernetes.io/job-tracking"]}}`)
}

// unblockDeletion removes the finalizers of the pods of a Job.
func (w *world) unblockDeletion(job string) { w.patchPods(job, `{"metadata": {"finalizers": null}}`) }

// patchPods applies a JSON merge patch to all pods of a Job.
func (w *world) patchPods(job, patch string) {
	w.Helper()
	var pods corev1.PodList
	if err := w.Client.List(w.Context(), &pods, client.InNamespace(w.Namespace),
		client.MatchingLabels{batchv1.JobNameLabel: job}); err != nil {
		w.Fatal(err)
	}
	for i := range pods.Items {
		w.Patch(&pods.Items[i], patch)
	}
}

// TestBatchJobUsesItsPrebuiltWorkload: a Job that names a prebuilt Workload waits, with an event, until that Workload
// exists, and then becomes its owner and runs by its admission.
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
	prebuilt := w.untilOnlyWorkload("is finished", func(wl *kueue.Workload) bool {
		return meta.IsStatusConditionTrue(wl.Status.Conditions, kueue.WorkloadFinished)
	})
	if owner := metav1.GetControllerOf(prebuilt); owner == nil || owner.Name != "job" {
		t.Errorf("the prebuilt Workload has the controller %+v, want the Job", owner)
	}
}

// TestUnqueuedBatchJobUsesTheLocalQueueNamedDefault: a Job without a queue label is queued if its namespace has a
// LocalQueue named default. A Job that ran before that LocalQueue was created is left alone.
func TestUnqueuedBatchJobUsesTheLocalQueueNamedDefault(t *testing.T) {
	w := newWorld(t)
	free := w.batchJob("free", "", 1, time.Hour)
	free.Spec.Template.Spec.Tolerations = []corev1.Toleration{{Key: "muster.dev/simulated",
		Operator: corev1.TolerationOpExists}}
	w.Create(free)
	w.UntilJob("free", "runs", running(1))
	w.gpuQueue(muster.DefaultQueue, 8)
	w.untilHeld(w.batchJob("queued", "", 1, 0))
	w.Create(w.batchJob("queued", "", 1, 0))
	w.UntilJob("queued", "completes", jobCompleted)
	if list := w.workloads(); len(list) != 1 {
		t.Errorf("%d Workloads, want 1: the Job that ran before the LocalQueue was created needs none", len(list))
	}
	w.UntilJob("free", "still runs", running(1))
}
