package deadlines

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/test/scenario/harness"
)

// TestAJobWhosePodsAreNeverReady is evicted, tried again once, as often as the configuration says, then deactivated, and in
// the end deleted with its pods and its Workload.
func TestAJobWhosePodsAreNeverReady(t *testing.T) {
	w := newWorld(t)
	job := w.Job("job", "q", 2) // there are no nodes
	w.UntilHeld(job, true)
	history := w.Record()
	w.Create(job)
	last := history.UntilDeleted("job")
	harness.Until(w.World, &batchv1.JobList{}, "the Job is gone", func(list *batchv1.JobList) bool { return len(list.Items) == 0 })
	harness.Until(w.World, &corev1.PodList{}, "its pods are gone", func(list *corev1.PodList) bool { return len(list.Items) == 0 })

	late := "Exceeded the PodsReady timeout " + w.Namespace + "/" + last.Name
	over := "The workload is deactivated due to exceeding the maximum number of re-queuing retries"
	for kind, want := range map[string][]string{
		kueue.WorkloadEvicted:   {"True PodsReadyTimeout: " + late, "False QuotaReserved: Previously: " + late, "True DeactivatedDueToRequeuingLimitExceeded: " + over},
		kueue.WorkloadRequeued:  {"False PodsReadyTimeout: " + late, "True BackoffFinished: The workload backoff was finished", "False DeactivatedDueToRequeuingLimitExceeded: " + over},
		kueue.WorkloadPodsReady: nil,
	} {
		if diff := cmp.Diff(want, history.Conditions("job", kind)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", kind, diff)
		}
	}
	if last.Status.Admission != nil || last.Status.RequeueState != nil || ptr.Deref(last.Spec.Active, true) {
		t.Errorf("it went with admission %+v, back-off %+v, active %v", last.Status.Admission, last.Status.RequeueState, last.Spec.Active)
	}
	want := []kueue.WorkloadSchedulingStatsEviction{
		{Reason: kueue.WorkloadEvictedByPodsReadyTimeout, UnderlyingCause: kueue.WorkloadWaitForStart, Count: 1},
		{Reason: kueue.WorkloadDeactivated, UnderlyingCause: kueue.WorkloadRequeuingLimitExceeded, Count: 1},
	}
	if diff := cmp.Diff(want, last.Status.SchedulingStats.Evictions); diff != "" {
		t.Errorf("evictions (-want +got):\n%s", diff)
	}
}
