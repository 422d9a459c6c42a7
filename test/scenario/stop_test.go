package scenario

import (
	"testing"
	"time"

	"github.com/musterhq/muster/test/scenario/harness"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
)

// stop sets the stopPolicy of the world's ClusterQueue, and stopLocal that of its LocalQueue gpu.
func (w *world) setStopPolicy(policy kueue.StopPolicy) {
	w.Helper()
	w.ChangeQueue(w.Namespace, func(q *kueue.ClusterQueue) { q.Spec.StopPolicy = &policy })
}

func (w *world) setLocalStopPolicy(policy kueue.StopPolicy) {
	w.Helper()
	q := w.localQueue()
	w.Change(q, func() { q.Spec.StopPolicy = &policy })
}

// TestStopPolicies: held, it admits nobody and what runs goes on; drained, what runs is stopped too, and is the first
// to run when it goes on.
func TestStopPolicies(t *testing.T) {
	for name, tc := range map[string]struct {
		set               func(*world, kueue.StopPolicy)
		says              string
		evicted, requeued string
	}{
		"a ClusterQueue": {(*world).setStopPolicy, "ClusterQueue", kueue.WorkloadEvictedByClusterQueueStopped, kueue.WorkloadClusterQueueRestarted},
		"a LocalQueue":   {(*world).setLocalStopPolicy, "LocalQueue", kueue.WorkloadEvictedByLocalQueueStopped, kueue.WorkloadLocalQueueRestarted},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.gpuQueue("gpu", 8)
			job := w.batchJob("job", "gpu", 2, time.Hour)
			w.raisePriority(job)
			w.untilHeld(job)
			w.Create(job)
			before := userFields(t, job)
			w.UntilJob("job", "runs", running(2))

			w.Create(w.bare("large", "gpu", 8))
			w.untilPending("large", kueue.WorkloadWaitingForQuota, "")
			tc.set(w, kueue.Hold)
			w.untilPending("large", kueue.WorkloadOnHold, tc.says)
			w.Create(w.bare("small", "gpu", 1)) // which there is room for
			w.untilPending("small", kueue.WorkloadOnHold, tc.says)
			w.UntilWorkloadOf("job", "goes on", func(o *kueue.Workload) bool {
				return runs(o) && meta.FindStatusCondition(o.Status.Conditions, kueue.WorkloadEvicted) == nil
			})
			w.UntilJob("job", "goes on", running(2))

			tc.set(w, kueue.HoldAndDrain)
			drained := w.UntilWorkloadOf("job", "has lost its place", harness.IsEvicted(tc.evicted))
			if c := meta.FindStatusCondition(drained.Status.Conditions, kueue.WorkloadEvicted); c.Message != "The "+tc.says+" is stopped" {
				t.Errorf("it was evicted: %s", c.Message)
			}
			if !is(drained, kueue.WorkloadRequeued, metav1.ConditionFalse, tc.evicted) {
				t.Errorf("it is back in its queue: %+v", drained.Status.Conditions)
			}
			w.UntilJob("job", "is stopped", harness.Stopped)
			if err := w.Client.Get(t.Context(), client.ObjectKeyFromObject(job), job); err != nil {
				t.Fatal(err)
			}
			if after := userFields(t, job); after != before {
				t.Errorf("it was made as %s and is stopped as %s", before, after)
			}
			w.untilPending("large", kueue.WorkloadOnHold, tc.says) // which there is room for now
			w.untilPending("small", kueue.WorkloadOnHold, tc.says)

			tc.set(w, kueue.None)
			w.UntilWorkloadOf("job", "is admitted again", func(o *kueue.Workload) bool {
				return runs(o) && is(o, kueue.WorkloadRequeued, metav1.ConditionTrue, tc.requeued)
			})
			w.UntilJob("job", "runs again", running(2))
			w.untilPending("large", kueue.WorkloadWaitingForQuota, "more needed") // who was stopped goes first, as it came first
		})
	}
}
