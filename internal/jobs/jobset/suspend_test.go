package jobset

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/musterhq/muster/internal/jobs"
)

// TestStopBeforeTheStartIsObserved: when a JobSet is evicted just after its Jobs were created or resumed, their status
// may count no pods, and say of resumed ones that they are suspended, while the Job controller creates pods. Its quota
// is held until the Job controller has answered the suspension.
func TestStopBeforeTheStartIsObserved(t *testing.T) {
	js := newSet().js
	stop := func(b jobBuilder) (jobs.Plan, *batchv1.Job) {
		p := checkedPlan(t, js, stopping, []client.Object{service(), b.job})
		if !p.Progress.Active {
			t.Fatalf("the quota is released with %+v", b.job.Status)
		}
		if len(p.Writes) == 0 {
			return p, nil
		}
		return p, p.Writes[0].Object().(*batchv1.Job).DeepCopy()
	}
	for name, b := range map[string]jobBuilder{
		"created": job("leader", 0).generation(1),
		"resumed": job("leader", 0).generation(3).acknowledged(),
	} {
		t.Run(name, func(t *testing.T) {
			for step := 0; !suspended(b.job); step++ {
				p, written := stop(b)
				if len(p.Writes) != 1 || step > 1 {
					t.Fatalf("step %d: %v, want one write at a time until the Job is suspended", step, writes(p))
				}
				b = jobBuilder{written}
			}
			b = b.generation(b.job.Generation + 1)
			if p, _ := stop(b); len(p.Writes) > 0 {
				t.Errorf("before the Job controller has answered: %v", writes(p))
			}
			if p := checkedPlan(t, js, stopping, of(b.acknowledged())); p.Progress.Active {
				t.Error("the quota is held after the Job controller has answered")
			}
		})
	}
}
