package scenario

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/musterhq/muster/test/scenario/harness"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
)

// say is what the controller of a check says about a Workload.
func (w *world) setCheck(workload string, state kueue.CheckState, requeueAfterSeconds *int32, updates ...kueue.PodSetUpdate) {
	w.Helper()
	w.ChangeStatus(workload, func(s *kueue.WorkloadStatus) {
		for i := range s.AdmissionChecks {
			s.AdmissionChecks[i].State, s.AdmissionChecks[i].Message = state, "so it is"
			s.AdmissionChecks[i].RequeueAfterSeconds, s.AdmissionChecks[i].PodSetUpdates = requeueAfterSeconds, updates
			s.AdmissionChecks[i].LastTransitionTime = metav1.Now()
		}
	})
}

// check makes an AdmissionCheck of the world's name, whose controller is not at work yet, and atWork has it be.
func (w *world) createCheck() *kueue.AdmissionCheck {
	w.Helper()
	check := &kueue.AdmissionCheck{ObjectMeta: metav1.ObjectMeta{Name: w.Namespace}, Spec: kueue.AdmissionCheckSpec{ControllerName: "example.com/check"}}
	w.Shared(check)
	return check
}

func (w *world) activateCheck(check *kueue.AdmissionCheck) {
	w.Helper()
	check.Status.Conditions = []metav1.Condition{{Type: kueue.AdmissionCheckActive, Status: "True", Reason: "Active", LastTransitionTime: metav1.Now()}}
	if err := w.Client.Status().Update(w.Context(), check); err != nil {
		w.Fatal(err)
	}
}

// asks has the check be asked in a ClusterQueue.
func requireCheck(check *kueue.AdmissionCheck) func(*kueue.ClusterQueueSpec) {
	return func(q *kueue.ClusterQueueSpec) {
		q.AdmissionChecks = []kueue.AdmissionCheckReference{kueue.AdmissionCheckReference(check.Name)}
	}
}

// awaits reports whether a Workload has quota and awaits its check.
func awaitsCheck(o *kueue.Workload) bool {
	return o.Status.Admission != nil && len(o.Status.AdmissionChecks) == 1 && o.Status.AdmissionChecks[0].State == kueue.CheckStatePending &&
		is(o, kueue.WorkloadAdmitted, "False", kueue.WorkloadUnsatisfiedAdmissionChecks) && !meta.IsStatusConditionTrue(o.Status.Conditions, kueue.WorkloadEvicted)
}

func TestAdmissionChecksDecideAfterTheQuota(t *testing.T) {
	w := newWorld(t)
	check := w.createCheck()
	w.gpuQueue("gpu", 8, requireCheck(check))
	w.untilQueue(metav1.ConditionFalse, kueue.ClusterQueueActiveReasonAdmissionCheckInactive, check.Name)
	w.activateCheck(check)
	w.Create(w.bare("a", "gpu", 1))
	w.UntilWorkload("a", "awaits the check", awaitsCheck)
	w.setCheck("a", kueue.CheckStateRetry, ptr.To[int32](1))
	w.UntilWorkload("a", "backed off and awaits the check again", func(o *kueue.Workload) bool {
		return awaitsCheck(o) && is(o, kueue.WorkloadRequeued, "True", kueue.WorkloadBackoffFinished)
	})
	w.setCheck("a", kueue.CheckStateReady, nil)
	w.UntilWorkload("a", "runs", runs)
	w.setCheck("a", kueue.CheckStateRejected, nil)
	w.UntilWorkload("a", "is deactivated", func(o *kueue.Workload) bool {
		return !*o.Spec.Active && o.Status.Admission == nil && is(o, kueue.WorkloadEvicted, "True", kueue.WorkloadDeactivatedDueTo+kueue.WorkloadEvictedByAdmissionCheck)
	})
}

// TestATerminatingLocalQueueReservesNoQuota: who waited for his checks in it is told so once, and gets no quota again,
// however long a finalizer keeps the queue.
func TestATerminatingLocalQueueReservesNoQuota(t *testing.T) {
	w := newWorld(t)
	check := w.createCheck()
	w.activateCheck(check)
	w.gpuQueue("gpu", 8, requireCheck(check))
	w.Create(w.bare("a", "gpu", 1))
	w.UntilWorkload("a", "awaits the check", awaitsCheck)
	history := w.Record()
	queue := &kueue.LocalQueue{ObjectMeta: metav1.ObjectMeta{Name: "gpu", Namespace: w.Namespace}}
	keep := func(finalizers string) {
		t.Helper()
		if err := w.Client.Patch(t.Context(), queue, client.RawPatch(types.MergePatchType, []byte(`{"metadata": {"finalizers": `+finalizers+`}}`))); err != nil {
			t.Fatal(err)
		}
	}
	keep(`["example.com/keeps-it"]`)
	if err := w.Client.Delete(t.Context(), queue); err != nil {
		t.Fatal(err)
	}
	told := w.UntilWorkload("a", "is told why", func(o *kueue.Workload) bool {
		return o.Status.Admission == nil && is(o, kueue.WorkloadQuotaReserved, "False", kueue.WorkloadInadmissible)
	})
	harness.UntilOne(w.World, &kueue.LocalQueueList{}, "gpu", "says that it takes nobody", func(q *kueue.LocalQueue) bool {
		return meta.IsStatusConditionFalse(q.Status.Conditions, kueue.LocalQueueActive) && q.Status.ReservingWorkloads == 0
	})
	if c := meta.FindStatusCondition(told.Status.Conditions, kueue.WorkloadQuotaReserved); c.Message != "LocalQueue gpu is being deleted" {
		t.Errorf("it is told: %s", c.Message)
	}
	// Who comes now is told after whatever else the first one is told: his word stands behind it in the same queue of
	// writes.
	w.Create(w.bare("later", "gpu", 1))
	w.UntilWorkload("later", "is told the same", harness.Waits(kueue.WorkloadInadmissible, "LocalQueue gpu is being deleted"))
	history.WaitFor(w.UntilWorkload("a", "is there", func(*kueue.Workload) bool { return true }))
	for _, again := range history.Since(told) {
		t.Errorf("written again: %+v", again.Status)
	}
	keep("null")
	w.UntilWorkload("a", "is told that it is gone", harness.Waits(kueue.WorkloadInadmissible, "LocalQueue gpu doesn't exist"))
}

// checkedJob has a queue of so many GPUs that asks a check whose controller is at work, and in it a Job of two pods.
func checkedJob(t *testing.T, gpus int64) (*world, *kueue.AdmissionCheck, *batchv1.Job) {
	w := newWorld(t)
	check := w.createCheck()
	w.activateCheck(check)
	w.gpuQueue("gpu", gpus, requireCheck(check))
	job := w.batchJob("job", "gpu", 2, time.Hour)
	w.untilHeld(job)
	w.Create(job)
	return w, check, job
}

// TestPodSetUpdatesOfAnAdmissionCheck: labels, annotations, node selectors and tolerations reach them and are gone when
// the Job is stopped, be it until later, as the check asks, or for good.
func TestPodSetUpdatesOfAnAdmissionCheck(t *testing.T) {
	w, _, job := checkedJob(t, 8)
	before := userFields(t, job)
	name := w.UntilWorkloadOf("job", "awaits the check", awaitsCheck).Name
	update := kueue.PodSetUpdate{
		Name:         "main",
		Labels:       map[string]string{"example.com/pool": "blue"},
		Annotations:  map[string]string{"example.com/booking": "seven"},
		NodeSelector: map[string]string{corev1.LabelArchStable: "amd64"},
		Tolerations:  []corev1.Toleration{{Key: "example.com/booked", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}},
	}
	w.setCheck(name, kueue.CheckStateReady, nil, update)
	w.UntilJob("job", "runs", running(2))
	for _, pod := range w.UntilPodsOf("job", 2) {
		for what, has := range map[string]bool{
			"label":         pod.Labels["example.com/pool"] == "blue" && pod.Labels[kueue.PodSetLabel] == "main",
			"annotation":    pod.Annotations["example.com/booking"] == "seven" && pod.Annotations["muster.dev/sim-duration"] == "1h0m0s",
			"node selector": maps.Equal(pod.Spec.NodeSelector, map[string]string{corev1.LabelArchStable: "amd64", "muster.dev/simulated": "true"}),
			"toleration":    slices.Contains(pod.Spec.Tolerations, update.Tolerations[0]),
		} {
			if !has {
				t.Errorf("the check's %s is not, or not alone, on the pod: %v %v %v %v", what, pod.Labels, pod.Annotations, pod.Spec.NodeSelector, pod.Spec.Tolerations)
			}
		}
	}

	w.setCheck(name, kueue.CheckStateRetry, ptr.To[int32](1))
	w.UntilWorkload(name, "backed off and awaits the check again", func(o *kueue.Workload) bool {
		return awaitsCheck(o) && is(o, kueue.WorkloadRequeued, "True", kueue.WorkloadBackoffFinished) && len(o.Status.AdmissionChecks[0].PodSetUpdates) == 0
	})
	w.UntilJob("job", "is stopped", harness.Stopped)
	if err := w.Client.Get(t.Context(), client.ObjectKeyFromObject(job), job); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, userFields(t, job)); diff != "" {
		t.Errorf("stopped (-before +after):\n%s", diff)
	}

	w.setCheck(name, kueue.CheckStateReady, nil)
	w.UntilJob("job", "runs again, as its user made it", func(job *batchv1.Job) bool {
		_, labelled := job.Spec.Template.Labels["example.com/pool"]
		return running(2)(job) && !labelled
	})
	w.setCheck(name, kueue.CheckStateRejected, nil)
	w.UntilWorkload(name, "is deactivated", func(o *kueue.Workload) bool {
		return !*o.Spec.Active && harness.IsEvicted(kueue.WorkloadDeactivatedDueTo+kueue.WorkloadEvictedByAdmissionCheck)(o)
	})
	w.UntilJob("job", "is stopped", harness.Stopped)
}

// TestAConflictingPodSetUpdateFailsTheJob: the Job never starts, its Workload says why, and others have its quota. An
// event is told of it too, unless there is no time for events: internal/jobs has a test of that.
func TestAConflictingPodSetUpdateFailsTheJob(t *testing.T) {
	w, check, _ := checkedJob(t, 2)
	name := w.UntilWorkloadOf("job", "awaits the check", awaitsCheck).Name
	w.Create(w.bare("next", "gpu", 2))
	w.setCheck(name, kueue.CheckStateReady, nil, kueue.PodSetUpdate{Name: "main", NodeSelector: map[string]string{"muster.dev/simulated": "false"}})
	over := w.UntilWorkloadOf("job", "is finished", func(o *kueue.Workload) bool {
		return is(o, kueue.WorkloadFinished, "True", kueue.WorkloadFinishedReasonFailedToStart)
	})
	want := "the admission check " + check.Name + ` sets the node selector muster.dev/simulated of pod set main to "false", but it is "true" already`
	if c := meta.FindStatusCondition(over.Status.Conditions, kueue.WorkloadFinished); c.Message != want {
		t.Errorf("it is told %q, want %q", c.Message, want)
	}
	w.UntilWorkload("next", "goes on", awaitsCheck)
	w.UntilJob("job", "never ran", func(job *batchv1.Job) bool { return harness.Stopped(job) && job.Status.StartTime == nil })
}

// TestAJobWithAChangedPodTemplateIsRequeued: while it is suspended its user may change what its pods ask for, also when
// it has quota already.
func TestAJobWithAChangedPodTemplateIsRequeued(t *testing.T) {
	w, _, job := checkedJob(t, 8)
	small := w.UntilWorkloadOf("job", "awaits the check", awaitsCheck)
	w.Change(job, func() {
		three := corev1.ResourceList{gpu: resource.MustParse("3")}
		job.Spec.Template.Spec.Containers[0].Resources = corev1.ResourceRequirements{Requests: three, Limits: three}
	})
	w.setCheck(small.Name, kueue.CheckStateReady, nil)
	large := w.UntilWorkloadOf("job", "queues for what it asks for now", func(o *kueue.Workload) bool { return o.UID != small.UID && awaitsCheck(o) })
	if used := large.Status.Admission.PodSetAssignments[0].ResourceUsage[gpu]; used.Value() != 6 {
		t.Errorf("it has quota for %s GPUs", used.String())
	}
	w.UntilJob("job", "never ran", func(job *batchv1.Job) bool { return harness.Stopped(job) && job.Status.StartTime == nil })
	w.setCheck(large.Name, kueue.CheckStateReady, nil)
	w.UntilJob("job", "runs", running(2))
}
