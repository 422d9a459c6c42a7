package scenario

import (
	"testing"
	"time"

	"github.com/musterhq/muster/test/scenario/harness"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
)

// setStopPolicy sets the stopPolicy of the world's ClusterQueue.
func (w *world) setStopPolicy(policy kueue.StopPolicy) {
	w.Helper()
	w.ChangeQueue(w.Namespace, func(q *kueue.ClusterQueue) { q.Spec.StopPolicy = &policy })
}

// setLocalStopPolicy sets the stopPolicy of the LocalQueue gpu.
func (w *world) setLocalStopPolicy(policy kueue.StopPolicy) {
	w.Helper()
	q := w.localQueue()
	w.Change(q, func() { q.Spec.StopPolicy = &policy })
}

// TestStopPolicies: a queue with the policy Hold admits no Workloads, and running ones continue. With HoldAndDrain the
// running ones are evicted too, and are the first to be admitted after the queue is resumed.
func TestStopPolicies(t *testing.T) {
	for name, tc := range map[string]struct {
		set               func(*world, kueue.StopPolicy)
		kind              string // as in messages
		evicted, requeued string // reasons of the conditions Evicted and Requeued
	}{
		"ClusterQueue": {(*world).setStopPolicy, "ClusterQueue", kueue.WorkloadEvictedByClusterQueueStopped,
			kueue.WorkloadClusterQueueRestarted},
		"LocalQueue": {(*world).setLocalStopPolicy, "LocalQueue", kueue.WorkloadEvictedByLocalQueueStopped,
			kueue.WorkloadLocalQueueRestarted},
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
			w.untilPending("large", kueue.WorkloadOnHold, tc.kind)
			w.Create(w.bare("small", "gpu", 1)) // which fits
			w.untilPending("small", kueue.WorkloadOnHold, tc.kind)
			w.UntilWorkloadOf("job", "still runs", func(o *kueue.Workload) bool {
				return runs(o) && meta.FindStatusCondition(o.Status.Conditions, kueue.WorkloadEvicted) == nil
			})
			w.UntilJob("job", "still runs", running(2))

			tc.set(w, kueue.HoldAndDrain)
			drained := w.UntilWorkloadOf("job", "is evicted", harness.IsEvicted(tc.evicted))
			if c := meta.FindStatusCondition(drained.Status.Conditions, kueue.WorkloadEvicted); c.Message != "The "+
				tc.kind+" is stopped" {
				t.Errorf("condition Evicted has the message %q, want that the %s is stopped", c.Message, tc.kind)
			}
			if !is(drained, kueue.WorkloadRequeued, metav1.ConditionFalse, tc.evicted) {
				t.Errorf("conditions = %+v, want Requeued=False with reason %s", drained.Status.Conditions, tc.evicted)
			}
			w.UntilJob("job", "is stopped", harness.Stopped)
			if err := w.Client.Get(t.Context(), client.ObjectKeyFromObject(job), job); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(before, userFields(t, job)); diff != "" {
				t.Errorf("Job after its eviction (-before +after):\n%s", diff)
			}
			w.untilPending("large", kueue.WorkloadOnHold, tc.kind) // although it fits now
			w.untilPending("small", kueue.WorkloadOnHold, tc.kind)

			tc.set(w, kueue.None)
			w.UntilWorkloadOf("job", "is admitted again", func(o *kueue.Workload) bool {
				return runs(o) && is(o, kueue.WorkloadRequeued, metav1.ConditionTrue, tc.requeued)
			})
			w.UntilJob("job", "runs again", running(2))
			// behind the evicted Job, which has the higher priority
			w.untilPending("large", kueue.WorkloadWaitingForQuota, "more needed")
		})
	}
}
