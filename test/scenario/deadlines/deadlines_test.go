// Package deadlines tests the deadlines, back-offs and retention periods of the configuration, on the embedded control
// plane and with an operator whose configuration has the shortest ones.
package deadlines

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/testcluster"
	"github.com/musterhq/muster/test/scenario/harness"
)

// shortDeadlines is the configuration of the operator.
const shortDeadlines = `
apiVersion: config.muster.dev/v1alpha1
kind: Configuration
waitForPodsReady:
  timeout: 1s
  recoveryTimeout: 1s
  requeuingStrategy:
    backoffBaseSeconds: 1
    backoffLimitCount: 1
objectRetentionPolicies:
  workloads:
    afterFinished: 1s
    afterDeactivatedByMuster: 1s
`

func TestMain(m *testing.M) {
	testcluster.Main(m, testcluster.Options{Operator: true, Config: shortDeadlines})
}

// world is a namespace with the LocalQueue q, which points to a ClusterQueue without resource groups.
type world struct{ *harness.World }

func newWorld(t *testing.T) *world {
	t.Parallel()
	w := &world{harness.New(t)}
	queue := &kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: w.Namespace},
		Spec: kueue.ClusterQueueSpec{NamespaceSelector: &metav1.LabelSelector{}}}
	w.Shared(queue)
	w.Create(&kueue.LocalQueue{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "q"},
		Spec: kueue.LocalQueueSpec{ClusterQueue: kueue.ClusterQueueReference(w.Namespace)}})
	return w
}

// submit creates a Workload with one pod without requests.
func (w *world) submit(name string) {
	w.Helper()
	w.Create(w.Workload(name, "q"))
}

// untilWorkload waits until the condition holds for the Workload of this name, which is nil if it does not exist.
func (w *world) untilWorkload(name, what string, holds func(*kueue.Workload) bool) {
	w.Helper()
	harness.Until(w.World, &kueue.WorkloadList{}, name+" "+what, func(list *kueue.WorkloadList) bool {
		for i := range list.Items {
			if list.Items[i].Name == name {
				return holds(&list.Items[i])
			}
		}
		return holds(nil)
	})
}

var is, runs = harness.Is, harness.Runs

// deleted reports whether there is no Workload.
func deleted(w *kueue.Workload) bool { return w == nil }

// TestANeverReadyWorkloadIsRequeuedThenDeactivatedThenDeleted: a Workload whose pods do not become ready in time is
// evicted and requeued after a back-off. At the next timeout the limit of requeuings is reached: it is deactivated, and
// deleted after its retention period.
func TestANeverReadyWorkloadIsRequeuedThenDeactivatedThenDeleted(t *testing.T) {
	w := newWorld(t)
	w.submit("a")
	w.untilWorkload("a", "runs", runs)
	w.Report("a", kueue.WorkloadPodsReady, metav1.ConditionFalse, kueue.WorkloadWaitForStart)
	w.untilWorkload("a", "runs again after its back-off", func(o *kueue.Workload) bool {
		return runs(o) && is(o, kueue.WorkloadRequeued, "True", kueue.WorkloadBackoffFinished) &&
			ptr.Deref(o.Status.RequeueState.Count, 0) == 1 && o.Status.RequeueState.RequeueAt == nil
	})
	w.Report("a", kueue.WorkloadPodsReady, metav1.ConditionFalse, kueue.WorkloadWaitForStart)
	w.untilWorkload("a", "is deactivated", func(o *kueue.Workload) bool {
		return is(o, kueue.WorkloadEvicted, "True", kueue.WorkloadDeactivatedDueTo+kueue.WorkloadRequeuingLimitExceeded) &&
			!*o.Spec.Active && o.Status.Admission == nil && o.Status.RequeueState == nil
	})
	w.untilWorkload("a", "is deleted", deleted)
}

// TestAWorkloadThatDoesNotRecoverFromALostPodIsEvicted: a Workload that was ready and is not ready again within the
// recovery timeout is evicted.
func TestAWorkloadThatDoesNotRecoverFromALostPodIsEvicted(t *testing.T) {
	w := newWorld(t)
	w.submit("a")
	w.untilWorkload("a", "runs", runs)
	w.Report("a", kueue.WorkloadPodsReady, metav1.ConditionTrue, kueue.WorkloadStarted)
	w.Report("a", kueue.WorkloadPodsReady, metav1.ConditionFalse, kueue.WorkloadWaitForRecovery)
	w.untilWorkload("a", "has been evicted because it did not recover", func(o *kueue.Workload) bool {
		return o.Status.SchedulingStats != nil &&
			o.Status.SchedulingStats.Evictions[0] == kueue.WorkloadSchedulingStatsEviction{
				Reason: kueue.WorkloadEvictedByPodsReadyTimeout, UnderlyingCause: kueue.WorkloadWaitForRecovery, Count: 1}
	})
}

// TestFinishedWorkloadsAreDeletedAfterTheirRetention: a finished Workload is deleted after its retention period.
func TestFinishedWorkloadsAreDeletedAfterTheirRetention(t *testing.T) {
	w := newWorld(t)
	w.submit("a")
	w.untilWorkload("a", "runs", runs)
	w.Report("a", kueue.WorkloadFinished, metav1.ConditionTrue, kueue.WorkloadFinishedReasonSucceeded)
	w.untilWorkload("a", "is deleted", deleted)
}
