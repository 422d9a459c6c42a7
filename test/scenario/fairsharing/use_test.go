package fairsharing

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/test/scenario/harness"
)

// untilConsumed waits until the status of the LocalQueue says that it has consumed more CPU than that, and gives how
// much.
func (w *world) untilConsumed(queue string, more float64) (cpus float64) {
	w.Helper()
	harness.UntilOne(w.World, &kueue.LocalQueueList{}, queue, "says what it consumed", func(q *kueue.LocalQueue) bool {
		if s := q.Status.FairSharing; s != nil && s.AdmissionFairSharingStatus != nil {
			consumed := s.AdmissionFairSharingStatus.ConsumedResources[corev1.ResourceCPU]
			cpus = consumed.AsApproximateFloat64()
		}
		return cpus > more
	})
	return cpus
}

// TestUsageHistorySurvivesAnOperatorRestart: one of two LocalQueues ran something, which is over. The operator
// that is started anew knows from its status, and lets the other one's Workload go before its own, which came first and
// has the higher priority.
func TestUsageHistorySurvivesAnOperatorRestart(t *testing.T) {
	w := newWorld(t)
	queue := w.queueOf("q", 1)
	queue.Spec.AdmissionScope = &kueue.AdmissionScope{AdmissionMode: kueue.UsageBasedAdmissionFairSharing}
	w.Shared(queue)
	w.Create(w.local("busy", "q"), w.local("idle", "q"), w.local("third", "q"))
	w.Create(w.workload("used", "busy", 0))
	w.UntilWorkload("used", "runs", harness.Runs)
	w.untilConsumed("busy", 0)
	w.finish("used")
	w.Create(w.workload("blocker", "third", 0))
	w.UntilWorkload("blocker", "runs", harness.Runs)
	before := w.untilConsumed("busy", 0)

	w.KillOperator()
	w.Create(w.workload("again", "busy", 9), w.workload("other", "idle", 0))
	w.UntilWorkload("again", "waits", waits)
	w.UntilWorkload("other", "waits", waits)
	w.finish("blocker")
	w.UntilWorkload("other", "runs", harness.Runs)
	w.UntilWorkload("again", "waits yet", waits)
	// Use fades by half in 10 minutes, and this takes less.
	if after := w.untilConsumed("busy", 0); after > before || after < before/2 {
		t.Errorf("the status says %v CPUs, and said %v before the operator was killed", after, before)
	}
	w.finish("other")
	w.UntilWorkload("again", "runs", harness.Runs)
}
