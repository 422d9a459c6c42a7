package placement

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
)

// TestABlockedHeadBlocksOnlyRequestsForTheSameResource checks that a waiting job at the head of the queue default holds
// back only jobs that request the resource that it lacks.
func TestABlockedHeadBlocksOnlyRequestsForTheSameResource(t *testing.T) {
	w := newSerialWorld(t)
	scarce, plain := corev1.ResourceName("example.com/scarce-"+w.Namespace),
		corev1.ResourceName("example.com/plain-"+w.Namespace)
	capacity := allocatableWith(scarce, 4)
	capacity[plain] = resource.MustParse("4")
	w.node("a", "r0", capacity)
	w.untilQuota(scarce, "4")
	w.Create(w.jobSetRequesting("first", scarce, 3))
	w.untilRunning("first", 1)
	w.Create(w.jobSetRequesting("head", scarce, 4))
	w.UntilWorkloadOf("head", "waits",
		func(wl *kueue.Workload) bool { return wl.Status.Admission == nil && len(wl.Status.Conditions) > 0 })
	// Jobs created in the same second are ordered by name: both of these are behind the head.
	w.Create(w.jobSetRequesting("tail", scarce, 1))
	w.Create(w.jobSetRequesting("other", plain, 1))
	w.untilRunning("other", 1)
	behind := w.UntilWorkloadOf("tail", "waits behind the head",
		func(wl *kueue.Workload) bool { return len(wl.Status.Conditions) > 0 })
	if behind.Status.Admission != nil {
		t.Errorf("tail was admitted before head, want it to wait: %s", w.State())
	}
}
