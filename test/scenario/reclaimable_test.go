package scenario

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/test/scenario/harness"
)

// reclaims reports whether so many pods of a Workload, of one pod set, have given their quota back.
func hasReclaimable(count int32) func(*kueue.Workload) bool {
	return func(o *kueue.Workload) bool {
		return len(o.Status.ReclaimablePods) == 1 && o.Status.ReclaimablePods[0] == kueue.ReclaimablePod{Name: "main", Count: count}
	}
}

// TestQuotaOfPodsThatHaveSucceededGoesToOthers: one after the other, as those of a Job do.
func TestQuotaOfPodsThatHaveSucceededGoesToOthers(t *testing.T) {
	w := newWorld(t)
	w.gpuQueue("gpu", 3)
	job := w.batchJob("job", "gpu", 3, time.Hour)
	w.untilHeld(job)
	w.Create(job)
	w.UntilJob("job", "is ready", func(job *batchv1.Job) bool { return ptr.Deref(job.Status.Ready, 0) == 3 })
	pods := w.UntilPodsOf("job", 3)
	for i, next := range []string{"first", "second"} {
		w.Create(w.bare(next, "gpu", 1))
		w.untilPending(next, kueue.WorkloadWaitingForQuota, "1 more needed")
		w.SetPodStatus(pods[i], corev1.PodSucceeded, 0)
		w.UntilWorkloadOf("job", "gives one more back", hasReclaimable(int32(i+1)))
		w.UntilWorkload(next, "runs", runs)
	}
	w.SetPodStatus(pods[2], corev1.PodSucceeded, 0)
	w.UntilJob("job", "completes", jobCompleted)
}

// TestReclaimablePodsDoNotShrinkWhileQuotaIsReserved: others may have it. Nobody may, be it a controller of its own or
// whoever writes into the Workload of a Job.
func TestReclaimablePodsDoNotShrinkWhileQuotaIsReserved(t *testing.T) {
	w := newWorld(t)
	w.gpuQueue("gpu", 4)
	a := w.bare("a", "gpu", 1)
	a.Spec.PodSets[0].Count = 4
	w.Create(a)
	w.UntilWorkload("a", "runs", runs)
	w.Create(w.bare("b", "gpu", 2))
	w.untilPending("b", kueue.WorkloadWaitingForQuota, "2 more needed")
	w.ChangeStatus("a", func(s *kueue.WorkloadStatus) { s.ReclaimablePods = []kueue.ReclaimablePod{{Name: "main", Count: 2}} })
	w.UntilWorkload("b", "runs on what two pods gave back", runs)
	for what, patch := range map[string]string{
		"fewer": `{"status": {"reclaimablePods": [{"name": "main", "count": 1}]}}`,
		"none":  `{"status": {"reclaimablePods": null}}`,
	} {
		if err := w.Client.Status().Patch(t.Context(), a.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(patch))); !apierrors.IsInvalid(err) {
			t.Errorf("reporting %s gave %v, want it refused", what, err)
		}
	}
	w.ChangeStatus("a", func(s *kueue.WorkloadStatus) { s.ReclaimablePods[0].Count = 3 })
	w.Create(w.bare("c", "gpu", 1))
	w.UntilWorkload("c", "runs on what a third gave back", runs)

	// Without quota it may say that it needs all its pods again.
	w.activate("a", false)
	w.UntilWorkload("a", "has lost its place", harness.IsEvicted(kueue.WorkloadDeactivated))
	w.ChangeStatus("a", func(s *kueue.WorkloadStatus) { s.ReclaimablePods = nil })
	w.activate("a", true)
	w.untilPending("a", kueue.WorkloadWaitingForQuota, "3 more needed")
}
