package scenario

import (
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/musterhq/muster/test/scenario/harness"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
)

// bare returns a Workload without a job, with one pod that requests that many GPUs.
func (w *world) bare(name, queue string, gpus int64) *kueue.Workload {
	return &kueue.Workload{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: w.Namespace},
		Spec: kueue.WorkloadSpec{QueueName: kueue.LocalQueueName(queue), PodSets: []kueue.PodSet{{
			Name: "main", Count: 1,
			Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
				RestartPolicy: corev1.RestartPolicyNever,
				Tolerations:   []corev1.Toleration{{Key: "muster.dev/simulated", Operator: corev1.TolerationOpExists}},
				Containers: []corev1.Container{{Name: "main", Image: "example.com/trainer", Resources: corev1.ResourceRequirements{
					Requests: corev1.ResourceList{gpu: *resource.NewQuantity(gpus, resource.DecimalSI)},
					Limits:   corev1.ResourceList{gpu: *resource.NewQuantity(gpus, resource.DecimalSI)},
				}}},
			}},
		}}},
	}
}

var is, runs = harness.Is, harness.Runs

// activate sets spec.active of the Workload of this name.
func (w *world) activate(name string, active bool) {
	w.Helper()
	o := &kueue.Workload{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: name}}
	w.Change(o, func() { o.Spec.Active = ptr.To(active) })
}

// finish sets the condition Finished of the Workload of this name, as its job's controller would.
func (w *world) finish(name string) {
	w.Helper()
	w.Report(name, kueue.WorkloadFinished, metav1.ConditionTrue, kueue.WorkloadFinishedReasonSucceeded)
}

// TestADeactivatedWorkloadReleasesQuotaAndRunsAgainWhenActivated: the quota of a Workload with spec.active false goes
// to the next one. Once it is active again it waits as requeued, and runs when there is quota.
func TestADeactivatedWorkloadReleasesQuotaAndRunsAgainWhenActivated(t *testing.T) {
	w := newWorld(t)
	w.gpuQueue("gpu", 8)
	w.Create(w.bare("first", "gpu", 8))
	w.UntilWorkload("first", "runs", runs)
	w.Create(w.bare("second", "gpu", 8))
	w.activate("first", false)
	w.UntilWorkload("first", "is evicted and has no quota", func(o *kueue.Workload) bool {
		return o.Status.Admission == nil && is(o, kueue.WorkloadEvicted, "True", kueue.WorkloadDeactivated) &&
			is(o, kueue.WorkloadRequeued, "False", kueue.WorkloadDeactivated)
	})
	w.UntilWorkload("second", "runs", runs)
	w.activate("first", true)
	w.UntilWorkload("first", "waits again",
		func(o *kueue.Workload) bool { return is(o, kueue.WorkloadRequeued, "True", kueue.WorkloadReactivated) })
	w.finish("second")
	w.UntilWorkload("first", "runs again", runs)
}

// TestADeactivatedJobSetReleasesItsQuotaAndRunsAgainWhenActivated: the Workload of a deactivated JobSet releases its
// quota once all pods have ended, and runs again when it is activated.
func TestADeactivatedJobSetReleasesItsQuotaAndRunsAgainWhenActivated(t *testing.T) {
	w := newWorld(t)
	w.gpuQueue("gpu", 8)
	w.Create(w.gang("gang", "gpu", 2, time.Hour))
	harness.Until(w.World, &batchv1.JobList{}, "both pods of the gang are ready", func(list *batchv1.JobList) bool {
		return len(list.Items) == 1 && ptr.Deref(list.Items[0].Status.Ready, 0) == 2
	})
	name := w.workloads()[0].Name
	w.activate(name, false)
	w.UntilWorkload(name, "has released its quota", func(o *kueue.Workload) bool {
		return o.Status.Admission == nil && is(o, kueue.WorkloadRequeued, "False", kueue.WorkloadDeactivated)
	})
	w.checkPodsEnded()
	w.activate(name, true)
	w.UntilWorkload(name, "runs again", runs)
}

// TestAWorkloadThatRunsTooLongIsDeactivated: a Workload is evicted and deactivated when it has run for its
// maximumExecutionTimeSeconds, and the time that it has accumulated is reset.
func TestAWorkloadThatRunsTooLongIsDeactivated(t *testing.T) {
	w := newWorld(t)
	w.gpuQueue("gpu", 8)
	a := w.bare("a", "gpu", 1)
	a.Spec.MaximumExecutionTimeSeconds = ptr.To[int32](1)
	w.Create(a)
	w.UntilWorkload("a", "is deactivated", func(o *kueue.Workload) bool {
		return !*o.Spec.Active && o.Status.Admission == nil && o.Status.AccumulatedPastExexcutionTimeSeconds == nil &&
			is(o, kueue.WorkloadEvicted, "True", kueue.WorkloadDeactivatedDueTo+kueue.WorkloadMaximumExecutionTimeExceeded)
	})
}

// findOwn returns the object of the list that is named after the namespace, nil if there is none.
func findOwn(w *world, list client.ObjectList) (found client.Object) {
	w.Helper()
	err := meta.EachListItem(list, func(o runtime.Object) error {
		if object := o.(client.Object); object.GetName() == w.Namespace {
			found = object
		}
		return nil
	})
	if err != nil {
		w.Fatal(err)
	}
	return found
}

// inUse reports whether the object named after the namespace has the finalizer that preserves what Workloads use.
func inUse(w *world, list client.ObjectList) bool {
	object := findOwn(w, list)
	return object != nil && slices.Contains(object.GetFinalizers(), kueue.ResourceInUseFinalizer)
}

// TestADeletedQueueExistsUntilItsLastWorkloadFinishes: a finalizer preserves a deleted ClusterQueue and its flavor
// while a Workload holds quota of them. The queue admits no further Workloads meanwhile.
func TestADeletedQueueExistsUntilItsLastWorkloadFinishes(t *testing.T) {
	w := newWorld(t)
	w.gpuQueue("gpu", 8)
	w.Create(w.bare("a", "gpu", 1))
	w.UntilWorkload("a", "runs", runs)
	harness.Until(w.World, &kueue.ClusterQueueList{}, "the ClusterQueue has its finalizer",
		func(list *kueue.ClusterQueueList) bool { return inUse(w, list) })
	harness.Until(w.World, &kueue.ResourceFlavorList{}, "the ResourceFlavor has its finalizer",
		func(list *kueue.ResourceFlavorList) bool { return inUse(w, list) })
	for _, o := range []client.Object{
		&kueue.ResourceFlavor{ObjectMeta: metav1.ObjectMeta{Name: w.Namespace}},
		&kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: w.Namespace}},
	} {
		if err := w.Client.Delete(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	w.untilQueue(metav1.ConditionFalse, kueue.ClusterQueueActiveReasonTerminating, "")
	w.Create(w.bare("b", "gpu", 1))
	w.UntilWorkload("a", "still runs", runs)
	w.finish("a")
	harness.Until(w.World, &kueue.ClusterQueueList{}, "the ClusterQueue is deleted",
		func(list *kueue.ClusterQueueList) bool { return findOwn(w, list) == nil })
	harness.Until(w.World, &kueue.ResourceFlavorList{}, "the ResourceFlavor is deleted",
		func(list *kueue.ResourceFlavorList) bool { return findOwn(w, list) == nil })
	for _, o := range w.workloads() {
		if o.Name == "b" && o.Status.Admission != nil {
			t.Errorf("b was admitted by a ClusterQueue that was being deleted")
		}
	}
}

// TestAWorkloadWhoseJobIsGoneIsFinished: a Workload that is labelled with the UID of a job that does not exist finishes
// with the reason OwnerNotFound.
func TestAWorkloadWhoseJobIsGoneIsFinished(t *testing.T) {
	w := newWorld(t)
	w.gpuQueue("gpu", 8)
	orphan := w.bare("a", "gpu", 1)
	orphan.Labels = map[string]string{kueue.JobUIDLabel: "of-a-job-that-is-gone"}
	w.Create(orphan)
	w.UntilWorkload("a", "is finished", func(o *kueue.Workload) bool {
		return is(o, kueue.WorkloadFinished, "True", kueue.WorkloadFinishedReasonOwnerNotFound)
	})
}

// TestExecutionTimeAccumulatesAcrossAdmissions: a Job that may run for 40 s is evicted once and admitted again. It must
// be deactivated when both runs together have taken 40 s. The margins allow for a machine that is slow by half a
// minute.
func TestExecutionTimeAccumulatesAcrossAdmissions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.gpuQueue("gpu", 8)
	const limit, first = 40, 10
	job := w.batchJob("job", "gpu", 1, time.Hour)
	job.Labels[kueue.MaxExecTimeSecondsLabel] = strconv.Itoa(limit)
	w.untilHeld(job)
	w.Create(job)
	w.UntilJob("job", "runs", running(1))
	clock := w.bare("clock", "gpu", 1)
	clock.Spec.MaximumExecutionTimeSeconds = ptr.To[int32](first)
	w.Create(clock)
	w.UntilWorkload("clock", "is deactivated after ten seconds", func(o *kueue.Workload) bool { return !*o.Spec.Active })

	w.setStopPolicy(kueue.HoldAndDrain)
	stopped := w.UntilWorkloadOf("job", "is evicted", harness.IsEvicted(kueue.WorkloadEvictedByClusterQueueStopped))
	past := ptr.Deref(stopped.Status.AccumulatedPastExexcutionTimeSeconds, 0)
	if past < first || past >= limit {
		t.Fatalf("the accumulated time after the first run is %d s, want at least %[3]d s and less than %[2]d s", past, limit, first)
	}
	w.setStopPolicy(kueue.None)
	again := w.UntilWorkloadOf("job", "runs again", runs)
	deactivated := w.UntilWorkloadOf("job", "is deactivated",
		harness.IsEvicted(kueue.WorkloadDeactivatedDueTo+kueue.WorkloadMaximumExecutionTimeExceeded))
	since := meta.FindStatusCondition(again.Status.Conditions, kueue.WorkloadAdmitted).LastTransitionTime
	until := meta.FindStatusCondition(deactivated.Status.Conditions, kueue.WorkloadEvicted).LastTransitionTime
	if ran := until.Sub(since.Time); ran < time.Duration(limit-past)*time.Second || ran >= limit*time.Second {
		t.Errorf("the second run took %s, want at least %d s and less than %d s", ran, limit-past, limit)
	}
	w.UntilJob("job", "is stopped", harness.Stopped)
}
