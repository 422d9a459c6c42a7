package deadlines

import (
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/test/scenario/harness"
)

// podsProblem is what follows in a message once kube-scheduler has said why the pods wait, or why the first of them
// does.
var podsProblem = regexp.MustCompile(`: [12] of 2 pods like job-[a-z0-9]+: Unschedulable: no nodes available to schedule pods$`)

// TestAJobWhosePodsAreNeverReady: a Job whose pods do not become ready is evicted, requeued once, as the configuration
// allows, then deactivated, and in the end deleted with its pods and its Workload.
func TestAJobWhosePodsAreNeverReady(t *testing.T) {
	w := newWorld(t)
	job := w.Job("job", "q", 2) // its pods stay pending: there are no nodes
	w.UntilHeld(job, true)
	history := harness.Record(w.World)
	w.Create(job)
	last := history.UntilDeleted("job")
	harness.Until(w.World, &batchv1.JobList{}, "the Job is deleted",
		func(list *batchv1.JobList) bool { return len(list.Items) == 0 })
	harness.Until(w.World, &corev1.PodList{}, "the pods of the Job are deleted",
		func(list *corev1.PodList) bool { return len(list.Items) == 0 })

	timeout := "Exceeded the PodsReady timeout " + w.Namespace + "/" + last.Name
	deactivated := "The workload is deactivated due to exceeding the maximum number of re-queuing retries"
	for kind, want := range map[string][]string{
		kueue.WorkloadEvicted: {"True PodsReadyTimeout: " + timeout, "False QuotaReserved: Previously: " + timeout,
			"True DeactivatedDueToRequeuingLimitExceeded: " + deactivated},
		kueue.WorkloadRequeued: {"False PodsReadyTimeout: " + timeout,
			"True BackoffFinished: The workload backoff was finished",
			"False DeactivatedDueToRequeuingLimitExceeded: " + deactivated},
		kueue.WorkloadPodsReady: nil,
	} {
		var got []string
		for _, condition := range history.Conditions("job", kind) {
			got = append(got, podsProblem.ReplaceAllString(condition, ""))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("states of the condition %s (-want +got):\n%s", kind, diff)
		}
	}
	if last.Status.Admission != nil || last.Status.RequeueState != nil || ptr.Deref(last.Spec.Active, true) {
		t.Errorf("last state of the Workload has admission %+v, requeue state %+v and active %t, want none, none and false",
			last.Status.Admission, last.Status.RequeueState, ptr.Deref(last.Spec.Active, true))
	}
	want := []kueue.WorkloadSchedulingStatsEviction{
		{Reason: kueue.WorkloadEvictedByPodsReadyTimeout, UnderlyingCause: kueue.WorkloadWaitForStart, Count: 1},
		{Reason: kueue.WorkloadDeactivated, UnderlyingCause: kueue.WorkloadRequeuingLimitExceeded, Count: 1},
	}
	if diff := cmp.Diff(want, last.Status.SchedulingStats.Evictions); diff != "" {
		t.Errorf("evictions in the last status (-want +got):\n%s", diff)
	}
}
