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

// bare is a Workload without a job, of one pod that needs so many GPUs.
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

func (w *world) activate(name string, active bool) {
	w.Helper()
	o := &kueue.Workload{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: name}}
	w.Change(o, func() { o.Spec.Active = ptr.To(active) })
}

func (w *world) finish(name string) {
	w.Helper()
	w.ChangeStatus(name, func(s *kueue.WorkloadStatus) {
		meta.SetStatusCondition(&s.Conditions, metav1.Condition{Type: kueue.WorkloadFinished, Status: metav1.ConditionTrue, Reason: kueue.WorkloadFinishedReasonSucceeded})
	})
}

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
	w.UntilWorkload("first", "waits again", func(o *kueue.Workload) bool { return is(o, kueue.WorkloadRequeued, "True", kueue.WorkloadReactivated) })
	w.finish("second")
	w.UntilWorkload("first", "runs again", runs)
}

func TestADeactivatedJobKeepsItsQuotaUntilItsPodsAreGone(t *testing.T) {
	w := newWorld(t)
	w.gpuQueue("gpu", 8)
	w.Create(w.gang("gang", "gpu", 2, time.Hour))
	harness.Until(w.World, &batchv1.JobList{}, "it is ready", func(list *batchv1.JobList) bool {
		return len(list.Items) == 1 && ptr.Deref(list.Items[0].Status.Ready, 0) == 2
	})
	name := w.workloads()[0].Name
	w.activate(name, false)
	w.UntilWorkload(name, "gave its quota back", func(o *kueue.Workload) bool {
		return o.Status.Admission == nil && is(o, kueue.WorkloadRequeued, "False", kueue.WorkloadDeactivated)
	})
	w.activate(name, true)
	w.UntilWorkload(name, "runs again", runs)
}

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

// find is the object of the world's own name, nil if there is none.
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

func inUse(w *world, list client.ObjectList) bool {
	object := findOwn(w, list)
	return object != nil && slices.Contains(object.GetFinalizers(), kueue.ResourceInUseFinalizer)
}

func TestADeletedQueueExistsUntilItsLastWorkloadFinishes(t *testing.T) {
	w := newWorld(t)
	w.gpuQueue("gpu", 8)
	w.Create(w.bare("a", "gpu", 1))
	w.UntilWorkload("a", "runs", runs)
	harness.Until(w.World, &kueue.ClusterQueueList{}, "the queue is kept", func(list *kueue.ClusterQueueList) bool { return inUse(w, list) })
	harness.Until(w.World, &kueue.ResourceFlavorList{}, "the flavor is kept", func(list *kueue.ResourceFlavorList) bool { return inUse(w, list) })
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
	w.UntilWorkload("a", "runs on", runs)
	w.finish("a")
	harness.Until(w.World, &kueue.ClusterQueueList{}, "the queue is gone", func(list *kueue.ClusterQueueList) bool { return findOwn(w, list) == nil })
	harness.Until(w.World, &kueue.ResourceFlavorList{}, "the flavor is gone", func(list *kueue.ResourceFlavorList) bool { return findOwn(w, list) == nil })
	for _, o := range w.workloads() {
		if o.Name == "b" && o.Status.Admission != nil {
			t.Errorf("b was admitted to a queue that was being deleted")
		}
	}
}

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

// TestExecutionTimeAccumulatesAcrossAdmissions: a Job that may run for 40 s is stopped for good that long after its
// first start, less the time for which it was stopped. A machine that is slow by half a minute changes nothing.
func TestExecutionTimeAccumulatesAcrossAdmissions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.gpuQueue("gpu", 8)
	const most, first = 40, 10
	job := w.batchJob("job", "gpu", 1, time.Hour)
	job.Labels[kueue.MaxExecTimeSecondsLabel] = strconv.Itoa(most)
	w.untilHeld(job)
	w.Create(job)
	w.UntilJob("job", "runs", running(1))
	clock := w.bare("clock", "gpu", 1)
	clock.Spec.MaximumExecutionTimeSeconds = ptr.To[int32](first)
	w.Create(clock)
	w.UntilWorkload("clock", "has run for ten seconds", func(o *kueue.Workload) bool { return !*o.Spec.Active })

	w.setStopPolicy(kueue.HoldAndDrain)
	stopped := w.UntilWorkloadOf("job", "has lost its place", harness.IsEvicted(kueue.WorkloadEvictedByClusterQueueStopped))
	past := ptr.Deref(stopped.Status.AccumulatedPastExexcutionTimeSeconds, 0)
	if past < first || past >= most {
		t.Fatalf("its first run took %d s of its %d, want at least the %d of one that started later", past, most, first)
	}
	w.setStopPolicy(kueue.None)
	again := w.UntilWorkloadOf("job", "runs again", runs)
	over := w.UntilWorkloadOf("job", "is deactivated", harness.IsEvicted(kueue.WorkloadDeactivatedDueTo+kueue.WorkloadMaximumExecutionTimeExceeded))
	since := meta.FindStatusCondition(again.Status.Conditions, kueue.WorkloadAdmitted).LastTransitionTime
	until := meta.FindStatusCondition(over.Status.Conditions, kueue.WorkloadEvicted).LastTransitionTime
	if ran := until.Sub(since.Time); ran < time.Duration(most-past)*time.Second || ran >= most*time.Second {
		t.Errorf("its second run took %s, of %d s less the %d of the first", ran, most, past)
	}
	w.UntilJob("job", "is stopped", harness.Stopped)
}
