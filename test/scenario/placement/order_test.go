package placement

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/engine/reason"
)

// TestJobsPassABlockedHeadUnlessTheyDelayIt checks that in the queue default, where a start is planned for a job that
// does not fit, only jobs that take nothing of what it needs then, or are over by then, start before it.
func TestJobsPassABlockedHeadUnlessTheyDelayIt(t *testing.T) {
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
	w.UntilWorkloadOf("tail", "waits behind the head", func(wl *kueue.Workload) bool {
		reserved := meta.FindStatusCondition(wl.Status.Conditions, kueue.WorkloadQuotaReserved)
		return wl.Status.Admission == nil && reserved != nil && reserved.Reason == string(reason.BehindReservation)
	})
}
