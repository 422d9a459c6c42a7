package scenario

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
)

// TestTimestampsOfASkewedClock: Workloads that were admitted by operators whose clocks were an hour ahead or a day
// behind keep running, and their quota goes to the pending Workload when they finish.
func TestTimestampsOfASkewedClock(t *testing.T) {
	w := newWorld(t)
	w.gpuQueue("gpu", 8)
	for name, skew := range map[string]time.Duration{"ahead": time.Hour, "behind": -24 * time.Hour} {
		w.Create(w.bare(name, "gpu", 4))
		w.UntilWorkload(name, "runs", runs)
		w.ChangeStatus(name, func(s *kueue.WorkloadStatus) {
			for i := range s.Conditions {
				s.Conditions[i].LastTransitionTime.Time = s.Conditions[i].LastTransitionTime.Add(skew)
			}
		})
	}
	w.Create(w.bare("next", "gpu", 8))
	w.UntilWorkload("next", "waits",
		func(o *kueue.Workload) bool { return is(o, kueue.WorkloadQuotaReserved, "False", "WaitingForQuota") })
	w.finish("ahead")
	w.finish("behind")
	w.UntilWorkload("next", "runs", runs)
	for _, name := range []string{"ahead", "behind"} {
		o := &kueue.Workload{}
		o.Namespace, o.Name = w.Namespace, name
		w.Get(o)
		if c := meta.FindStatusCondition(o.Status.Conditions, kueue.WorkloadEvicted); c != nil {
			t.Errorf("%s was evicted: %s", client.ObjectKeyFromObject(o), c.Message)
		}
	}
}
