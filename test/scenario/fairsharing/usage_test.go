package fairsharing

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/test/scenario/harness"
)

// untilConsumed waits until the status of the LocalQueue reports a consumption of CPUs, and returns it.
func (w *world) untilConsumed(queue string) (cpus float64) {
	w.Helper()
	harness.UntilOne(w.World, &kueue.LocalQueueList{}, queue, "reports a consumption of CPUs",
		func(q *kueue.LocalQueue) bool {
			if s := q.Status.FairSharing; s != nil && s.AdmissionFairSharingStatus != nil {
				consumed := s.AdmissionFairSharingStatus.ConsumedResources[corev1.ResourceCPU]
				cpus = consumed.AsApproximateFloat64()
			}
			return cpus > 0
		})
	return cpus
}

// TestUsageHistorySurvivesAnOperatorRestart: one of two LocalQueues has run a Workload, which is finished. A restarted
// operator reads this usage from the status of the LocalQueue. It therefore admits the Workload of the other LocalQueue
// before its next one, although that was created earlier and has the higher priority.
func TestUsageHistorySurvivesAnOperatorRestart(t *testing.T) {
	w := newWorld(t)
	queue := w.queueOf("q", 1)
	queue.Spec.AdmissionScope = &kueue.AdmissionScope{AdmissionMode: kueue.UsageBasedAdmissionFairSharing}
	w.Shared(queue)
	w.Create(w.local("busy", "q"), w.local("idle", "q"), w.local("third", "q"))
	w.Create(w.workload("used", "busy", 0))
	w.UntilWorkload("used", "is admitted", harness.Runs)
	w.untilConsumed("busy")
	w.finish("used")
	w.Create(w.workload("blocker", "third", 0))
	w.UntilWorkload("blocker", "is admitted", harness.Runs)
	before := w.untilConsumed("busy")

	w.Operator().Kill()
	w.Create(w.workload("again", "busy", 9), w.workload("other", "idle", 0))
	w.UntilWorkload("again", "waits for quota", waits)
	w.UntilWorkload("other", "waits for quota", waits)
	w.finish("blocker")
	w.UntilWorkload("other", "is admitted", harness.Runs)
	w.UntilWorkload("again", "still waits for quota", waits)
	// Usage is halved every 10 minutes, and the test takes less.
	if after := w.untilConsumed("busy"); after > before || after < before/2 {
		t.Errorf("consumption = %v CPUs, want between half of and all of that before the operator was killed, %v", after, before)
	}
	w.finish("other")
	w.UntilWorkload("again", "is admitted", harness.Runs)
}
