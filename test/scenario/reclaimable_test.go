package scenario

import (
	"fmt"
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

// hasReclaimable reports whether a Workload has that many reclaimable pods, all of the pod set main.
func hasReclaimable(count int32) func(*kueue.Workload) bool {
	return func(o *kueue.Workload) bool {
		return len(o.Status.ReclaimablePods) == 1 &&
			o.Status.ReclaimablePods[0] == kueue.ReclaimablePod{Name: "main", Count: count}
	}
}

// TestQuotaOfPodsThatHaveSucceededGoesToOthers: each pod of a Job that succeeds makes its quota reclaimable, and the
// next pending Workload runs with it.
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
		w.UntilWorkloadOf("job", fmt.Sprintf("has %d reclaimable pods", i+1), hasReclaimable(int32(i+1)))
		w.UntilWorkload(next, "runs", runs)
	}
	w.SetPodStatus(pods[2], corev1.PodSucceeded, 0)
	w.UntilJob("job", "completes", jobCompleted)
}

// TestReclaimablePodsDoNotShrinkWhileQuotaIsReserved: the API server rejects a lower count of reclaimable pods from any
// client while the Workload has quota, because other Workloads may use the reclaimed quota already.
func TestReclaimablePodsDoNotShrinkWhileQuotaIsReserved(t *testing.T) {
	w := newWorld(t)
	w.gpuQueue("gpu", 4)
	a := w.bare("a", "gpu", 1)
	a.Spec.PodSets[0].Count = 4
	w.Create(a)
	w.UntilWorkload("a", "runs", runs)
	w.Create(w.bare("b", "gpu", 2))
	w.untilPending("b", kueue.WorkloadWaitingForQuota, "2 more needed")
	w.ChangeStatus("a", func(s *kueue.WorkloadStatus) {
		s.ReclaimablePods = []kueue.ReclaimablePod{{Name: "main", Count: 2}}
	})
	w.UntilWorkload("b", "runs with the quota of two reclaimable pods", runs)
	for what, patch := range map[string]string{
		"fewer": `{"status": {"reclaimablePods": [{"name": "main", "count": 1}]}}`,
		"none":  `{"status": {"reclaimablePods": null}}`,
	} {
		if err := w.Client.Status().Patch(t.Context(), a.DeepCopy(),
			client.RawPatch(types.MergePatchType, []byte(patch))); !apierrors.IsInvalid(err) {
			t.Errorf("reporting %s reclaimable pods: error %v, want Invalid", what, err)
		}
	}
	w.ChangeStatus("a", func(s *kueue.WorkloadStatus) { s.ReclaimablePods[0].Count = 3 })
	w.Create(w.bare("c", "gpu", 1))
	w.UntilWorkload("c", "runs with the quota of the third reclaimable pod", runs)

	// Without quota a Workload may have fewer reclaimable pods than before.
	w.activate("a", false)
	w.UntilWorkload("a", "is evicted", harness.IsEvicted(kueue.WorkloadDeactivated))
	w.ChangeStatus("a", func(s *kueue.WorkloadStatus) { s.ReclaimablePods = nil })
	w.activate("a", true)
	w.untilPending("a", kueue.WorkloadWaitingForQuota, "3 more needed")
}
