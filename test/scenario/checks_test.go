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

// setCheck sets the state of the admission checks of a Workload, as their controller would.
func (w *world) setCheck(workload string, state kueue.CheckState, requeueAfterSeconds *int32,
	updates ...kueue.PodSetUpdate) {
	w.Helper()
	w.ChangeStatus(workload, func(s *kueue.WorkloadStatus) {
		for i := range s.AdmissionChecks {
			s.AdmissionChecks[i].State, s.AdmissionChecks[i].Message = state, "set by the test"
			s.AdmissionChecks[i].RequeueAfterSeconds, s.AdmissionChecks[i].PodSetUpdates = requeueAfterSeconds, updates
			s.AdmissionChecks[i].LastTransitionTime = metav1.Now()
		}
	})
}

// createCheck creates an AdmissionCheck named after the namespace. It is inactive until activateCheck.
func (w *world) createCheck() *kueue.AdmissionCheck {
	w.Helper()
	check := &kueue.AdmissionCheck{ObjectMeta: metav1.ObjectMeta{Name: w.Namespace},
		Spec: kueue.AdmissionCheckSpec{ControllerName: "example.com/check"}}
	w.Shared(check)
	return check
}

// activateCheck sets the check's condition Active, as its controller would.
func (w *world) activateCheck(check *kueue.AdmissionCheck) {
	w.Helper()
	check.Status.Conditions = []metav1.Condition{{Type: kueue.AdmissionCheckActive, Status: "True", Reason: "Active",
		LastTransitionTime: metav1.Now()}}
	if err := w.Client.Status().Update(w.Context(), check); err != nil {
		w.Fatal(err)
	}
}

// requireCheck returns an edit that makes the check required in a ClusterQueue.
func requireCheck(check *kueue.AdmissionCheck) func(*kueue.ClusterQueueSpec) {
	return func(q *kueue.ClusterQueueSpec) {
		q.AdmissionChecks = []kueue.AdmissionCheckReference{kueue.AdmissionCheckReference(check.Name)}
	}
}

// awaitsCheck reports whether a Workload has quota and waits for its only admission check.
func awaitsCheck(o *kueue.Workload) bool {
	return o.Status.Admission != nil && len(o.Status.AdmissionChecks) == 1 &&
		o.Status.AdmissionChecks[0].State == kueue.CheckStatePending &&
		is(o, kueue.WorkloadAdmitted, "False", kueue.WorkloadUnsatisfiedAdmissionChecks) &&
		!meta.IsStatusConditionTrue(o.Status.Conditions, kueue.WorkloadEvicted)
}

// TestAdmissionChecksDecideAfterTheQuota: a Workload with quota runs only once its admission check is Ready. Retry
// evicts it until the back-off is over, and Rejected deactivates it.
func TestAdmissionChecksDecideAfterTheQuota(t *testing.T) {
	w := newWorld(t)
	check := w.createCheck()
	w.gpuQueue("gpu", 8, requireCheck(check))
	w.untilQueue(metav1.ConditionFalse, kueue.ClusterQueueActiveReasonAdmissionCheckInactive, check.Name)
	w.activateCheck(check)
	w.Create(w.bare("a", "gpu", 1))
	w.UntilWorkload("a", "awaits the check", awaitsCheck)
	w.setCheck("a", kueue.CheckStateRetry, ptr.To[int32](1))
	w.UntilWorkload("a", "awaits the check again after its back-off", func(o *kueue.Workload) bool {
		return awaitsCheck(o) && is(o, kueue.WorkloadRequeued, "True", kueue.WorkloadBackoffFinished)
	})
	w.setCheck("a", kueue.CheckStateReady, nil)
	w.UntilWorkload("a", "runs", runs)
	w.setCheck("a", kueue.CheckStateRejected, nil)
	w.UntilWorkload("a", "is deactivated", func(o *kueue.Workload) bool {
		return !*o.Spec.Active && o.Status.Admission == nil &&
			is(o, kueue.WorkloadEvicted, "True", kueue.WorkloadDeactivatedDueTo+kueue.WorkloadEvictedByAdmissionCheck)
	})
}

// TestATerminatingLocalQueueReservesNoQuota: a Workload that awaits its checks loses its quota when its LocalQueue is
// deleted. Its status says why, is written once, and does not change while a finalizer preserves the queue.
func TestATerminatingLocalQueueReservesNoQuota(t *testing.T) {
	w := newWorld(t)
	check := w.createCheck()
	w.activateCheck(check)
	w.gpuQueue("gpu", 8, requireCheck(check))
	w.Create(w.bare("a", "gpu", 1))
	w.UntilWorkload("a", "awaits the check", awaitsCheck)
	history := harness.Record(w.World)
	queue := &kueue.LocalQueue{ObjectMeta: metav1.ObjectMeta{Name: "gpu", Namespace: w.Namespace}}
	setFinalizers := func(finalizers string) {
		t.Helper()
		if err := w.Client.Patch(t.Context(), queue,
			client.RawPatch(types.MergePatchType, []byte(`{"metadata": {"finalizers": `+finalizers+`}}`))); err != nil {
			t.Fatal(err)
		}
	}
	setFinalizers(`["example.com/test"]`)
	if err := w.Client.Delete(t.Context(), queue); err != nil {
		t.Fatal(err)
	}
	released := w.UntilWorkload("a", "has lost its quota as inadmissible", func(o *kueue.Workload) bool {
		return o.Status.Admission == nil && is(o, kueue.WorkloadQuotaReserved, "False", kueue.WorkloadInadmissible)
	})
	harness.UntilOne(w.World, &kueue.LocalQueueList{}, "gpu", "is inactive and has no reservations",
		func(q *kueue.LocalQueue) bool {
			return meta.IsStatusConditionFalse(q.Status.Conditions, kueue.LocalQueueActive) && q.Status.ReservingWorkloads == 0
		})
	if c := meta.FindStatusCondition(released.Status.Conditions,
		kueue.WorkloadQuotaReserved); c.Message != "LocalQueue gpu is being deleted" {
		t.Errorf("condition QuotaReserved has the message %q, want that LocalQueue gpu is being deleted", c.Message)
	}
	// The status of a Workload that is created now is written after any further write to the first one, because both go
	// through the same queue of writes.
	w.Create(w.bare("later", "gpu", 1))
	w.UntilWorkload("later", "waits because its LocalQueue is being deleted",
		harness.Waits(kueue.WorkloadInadmissible, "LocalQueue gpu is being deleted"))
	history.WaitFor(w.UntilWorkload("a", "exists", exists))
	for _, again := range history.Since(released) {
		t.Errorf("the Workload was written again: %+v", again.Status)
	}
	setFinalizers("null")
	w.UntilWorkload("a", "waits because its LocalQueue does not exist",
		harness.Waits(kueue.WorkloadInadmissible, "LocalQueue gpu doesn't exist"))
}

// checkedJob creates a queue with that many GPUs that requires an active admission check, and in it a Job of two pods.
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

// TestPodSetUpdatesOfAnAdmissionCheck: the pods of a Job get the labels, annotations, node selectors and tolerations
// that its check sets. The Job's template loses them when the Job is stopped, and does not get them back if the check
// is Ready again without updates.
func TestPodSetUpdatesOfAnAdmissionCheck(t *testing.T) {
	w, _, job := checkedJob(t, 8)
	before := userFields(t, job)
	name := w.UntilWorkloadOf("job", "awaits the check", awaitsCheck).Name
	update := kueue.PodSetUpdate{
		Name:         "main",
		Labels:       map[string]string{"example.com/pool": "blue"},
		Annotations:  map[string]string{"example.com/booking": "seven"},
		NodeSelector: map[string]string{corev1.LabelArchStable: "amd64"},
		Tolerations: []corev1.Toleration{{Key: "example.com/booked", Operator: corev1.TolerationOpExists,
			Effect: corev1.TaintEffectNoSchedule}},
	}
	w.setCheck(name, kueue.CheckStateReady, nil, update)
	w.UntilJob("job", "runs", running(2))
	for _, pod := range w.UntilPodsOf("job", 2) {
		for what, has := range map[string]bool{
			"label": pod.Labels["example.com/pool"] == "blue" && pod.Labels[kueue.PodSetLabel] == "main",
			"annotation": pod.Annotations["example.com/booking"] == "seven" &&
				pod.Annotations["muster.dev/sim-duration"] == "1h0m0s",
			"node selector": maps.Equal(pod.Spec.NodeSelector,
				map[string]string{corev1.LabelArchStable: "amd64", "muster.dev/simulated": "true"}),
			"toleration": slices.Contains(pod.Spec.Tolerations, update.Tolerations[0]),
		} {
			if !has {
				t.Errorf("wrong %s on the pod: labels %v, annotations %v, node selector %v, tolerations %v; "+
					"want those of the user, the flavor and the check", what, pod.Labels, pod.Annotations, pod.Spec.NodeSelector,
					pod.Spec.Tolerations)
			}
		}
	}

	w.setCheck(name, kueue.CheckStateRetry, ptr.To[int32](1))
	w.UntilWorkload(name, "awaits the check again after its back-off", func(o *kueue.Workload) bool {
		return awaitsCheck(o) && is(o, kueue.WorkloadRequeued, "True", kueue.WorkloadBackoffFinished) &&
			len(o.Status.AdmissionChecks[0].PodSetUpdates) == 0
	})
	w.UntilJob("job", "is stopped", harness.Stopped)
	if err := w.Client.Get(t.Context(), client.ObjectKeyFromObject(job), job); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, userFields(t, job)); diff != "" {
		t.Errorf("Job after its suspension (-before +after):\n%s", diff)
	}

	w.setCheck(name, kueue.CheckStateReady, nil)
	w.UntilJob("job", "runs again without the label of the check", func(job *batchv1.Job) bool {
		_, labelled := job.Spec.Template.Labels["example.com/pool"]
		return running(2)(job) && !labelled
	})
	w.setCheck(name, kueue.CheckStateRejected, nil)
	w.UntilWorkload(name, "is deactivated", func(o *kueue.Workload) bool {
		return !*o.Spec.Active && harness.IsEvicted(kueue.WorkloadDeactivatedDueTo+kueue.WorkloadEvictedByAdmissionCheck)(o)
	})
	w.UntilJob("job", "is stopped", harness.Stopped)
}

// TestAConflictingPodSetUpdateFailsTheJob: a Job whose check sets a node selector that the flavor sets differently
// never starts. Its Workload finishes with the reason and releases its quota. The event about it is tested in
// internal/jobs, because events may be dropped.
func TestAConflictingPodSetUpdateFailsTheJob(t *testing.T) {
	w, check, _ := checkedJob(t, 2)
	name := w.UntilWorkloadOf("job", "awaits the check", awaitsCheck).Name
	w.Create(w.bare("next", "gpu", 2))
	w.setCheck(name, kueue.CheckStateReady, nil,
		kueue.PodSetUpdate{Name: "main", NodeSelector: map[string]string{"muster.dev/simulated": "false"}})
	finished := w.UntilWorkloadOf("job", "is finished", func(o *kueue.Workload) bool {
		return is(o, kueue.WorkloadFinished, "True", kueue.WorkloadFinishedReasonFailedToStart)
	})
	want := "the admission check " + check.Name +
		` sets the node selector muster.dev/simulated of pod set main to "false", but it is "true" already`
	if c := meta.FindStatusCondition(finished.Status.Conditions, kueue.WorkloadFinished); c.Message != want {
		t.Errorf("condition Finished has the message %q, want %q", c.Message, want)
	}
	w.UntilWorkload("next", "has quota and awaits the check", awaitsCheck)
	w.UntilJob("job", "is stopped and has never started",
		func(job *batchv1.Job) bool { return harness.Stopped(job) && job.Status.StartTime == nil })
}

// TestAJobWithAChangedPodTemplateIsRequeued: a user may change the requests of a suspended Job even after its quota is
// reserved. The Job then gets a new Workload with these requests and does not start by the admission of the old one.
func TestAJobWithAChangedPodTemplateIsRequeued(t *testing.T) {
	w, _, job := checkedJob(t, 8)
	small := w.UntilWorkloadOf("job", "awaits the check", awaitsCheck)
	w.Change(job, func() {
		three := corev1.ResourceList{gpu: resource.MustParse("3")}
		job.Spec.Template.Spec.Containers[0].Resources = corev1.ResourceRequirements{Requests: three, Limits: three}
	})
	w.setCheck(small.Name, kueue.CheckStateReady, nil)
	large := w.UntilWorkloadOf("job", "is replaced and has quota for the new requests",
		func(o *kueue.Workload) bool { return o.UID != small.UID && awaitsCheck(o) })
	if used := large.Status.Admission.PodSetAssignments[0].ResourceUsage[gpu]; used.Value() != 6 {
		t.Errorf("the new Workload has quota for %s GPUs, want 6", used.String())
	}
	w.UntilJob("job", "is stopped and has never started",
		func(job *batchv1.Job) bool { return harness.Stopped(job) && job.Status.StartTime == nil })
	w.setCheck(large.Name, kueue.CheckStateReady, nil)
	w.UntilJob("job", "runs", running(2))
}
