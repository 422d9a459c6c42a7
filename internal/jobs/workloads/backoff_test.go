package workloads

import (
	"testing"
	"time"

	"k8s.io/utils/ptr"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/workload"
)

func TestGangRefusedTooOftenIsDeactivated(t *testing.T) {
	w := waiting().admitted().w
	w.Status.RequeueState = &kueue.RequeueState{Count: ptr.To[int32](3)}
	report(w, jobs.Progress{Active: true, Refused: "no"},
		Backoff{Base: time.Minute, Max: time.Hour, Limit: ptr.To[int32](3)}, now)
	if !workload.IsEvicted(w) || !workload.IsTrue(w, kueue.WorkloadDeactivationTarget) ||
		w.Status.RequeueState.RequeueAt != nil {
		t.Errorf("conditions %v, requeueState %+v; want it evicted and deactivated, without requeueAt", conditions(w),
			w.Status.RequeueState)
	}
}

// TestRefusedGangIsReleasedWithBackoff: each eviction for refused pods doubles the time until the job is queued again.
func TestRefusedGangIsReleasedWithBackoff(t *testing.T) {
	w := waiting().admitted().w
	for _, wait := range []time.Duration{time.Minute, 2 * time.Minute} {
		w.Status.Conditions = waiting().admitted().w.Status.Conditions
		report(w, jobs.Progress{Active: true, Refused: "exceeded quota"}, minutely, now)
		at := w.Status.RequeueState.RequeueAt
		if !workload.IsEvicted(w) || !at.Time.Equal(now.Add(wait)) {
			t.Errorf("requeueAt = %v, want %v: %v", at, now.Add(wait), conditions(w))
		}
	}
	want := "Evicted=True PodsReadyTimeout: Its pods cannot be created: exceeded quota"
	if got := conditions(w); got[len(got)-1] != want {
		t.Errorf("conditions = %v, want last %s", got, want)
	}
}
