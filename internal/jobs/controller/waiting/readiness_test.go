package waiting

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/jobs/write"
	"github.com/musterhq/muster/internal/workload"
)

// TestReadinessIsHeldBack: while the API server is busy the first PodsReady condition is deferred, at most until
// Patience after the admission. Other changes of the status are not.
func TestReadinessIsHeldBack(t *testing.T) {
	admittedAt := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	admitted := &kueue.Workload{}
	workload.SetCondition(admitted, kueue.WorkloadAdmitted, metav1.ConditionTrue,
		kueue.WorkloadAdmittedReason, "", admittedAt)
	ready := admitted.DeepCopy()
	workload.SetCondition(ready, kueue.WorkloadPodsReady, metav1.ConditionTrue, kueue.WorkloadStarted, "ready", admittedAt)
	recovering := ready.DeepCopy()
	workload.SetCondition(recovering, kueue.WorkloadPodsReady, metav1.ConditionFalse, kueue.WorkloadWaitForRecovery,
		"recovering", admittedAt)
	reclaims := ready.DeepCopy()
	reclaims.Status.ReclaimablePods = []kueue.ReclaimablePod{{Name: "main", Count: 1}}

	const patience = time.Minute
	for name, tc := range map[string]struct {
		write write.Write
		busy  bool
		after time.Duration
		due   time.Duration // after the admission; 0 if it is written
	}{
		"not busy": {write.ChangeStatus(admitted, ready), false, time.Second, 0},
		"busy": {write.ChangeStatus(admitted, ready), true, time.Second,
			time.Second + readinessRetry},
		"busy, shortly before the end": {write.ChangeStatus(admitted, ready), true, patience - time.Second, patience},
		"busy for too long":            {write.ChangeStatus(admitted, ready), true, patience, 0},
		"with other changes":           {write.ChangeStatus(admitted, reclaims), true, time.Second, 0},
		"not ready any more":           {write.ChangeStatus(ready, recovering), true, time.Second, 0},
		"recovered":                    {write.ChangeStatus(recovering, ready), true, time.Second, 0},
		"another write":                {write.Create(admitted), true, time.Second, 0},
	} {
		t.Run(name, func(t *testing.T) {
			p := Readiness{Busy: func() bool { return tc.busy }, Patience: patience}.HoldBack(
				jobs.Plan{Batch: write.Batch{Writes: []write.Write{tc.write}}}, admittedAt.Add(tc.after))
			deferred := len(p.Writes) == 0
			if deferred != (tc.due > 0) || deferred && !p.Due.Equal(admittedAt.Add(tc.due)) {
				t.Errorf("%d writes, due %s after the admission, want it due after %s (0: written)", len(p.Writes),
					p.Due.Sub(admittedAt), tc.due)
			}
		})
	}
}
