package lifecycle_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/api/muster"
	"github.com/musterhq/muster/internal/admission/lifecycle"
	"github.com/musterhq/muster/internal/workload"
)

// limiting returns open queues with these time limits.
func limiting(local, cluster string) lifecycle.Facts {
	f := open()
	f.LocalQueue.Annotations = map[string]string{muster.MaxDurationAnnotation: local}
	f.ClusterQueue.Annotations = map[string]string{muster.MaxDurationAnnotation: cluster}
	return f
}

// of makes the Workload that of a job of the API.
func (b builder) of(apiVersion, kind string) builder {
	b.OwnerReferences[0].APIVersion, b.OwnerReferences[0].Kind = apiVersion, kind
	return b
}

// limited sets the Workload's own time limit.
func (b builder) limited(seconds int32) builder {
	b.Spec.MaximumExecutionTimeSeconds = ptr.To(seconds)
	return b
}

const deactivates = "DeactivationTarget=True MaximumExecutionTimeExceeded: exceeding the maximum execution time of "

// TestTheSmallestLimitDeactivates a Workload of any API, and one that is made by hand, and is named.
func TestTheSmallestLimitDeactivates(t *testing.T) {
	apis := map[string]func() builder{
		"of no job":        func() builder { return admitted().bare() },
		"of a JobSet":      func() builder { return admitted().of("jobset.x-k8s.io/v1alpha2", "JobSet") },
		"of a TrainingJob": func() builder { return admitted().of("breezeml.ai/v1", "TrainingJob") },
		"of a LatticeJob":  func() builder { return admitted().of("lattice.dev/v1", "LatticeJob") },
		"of a VCJob":       func() builder { return admitted().of("batch.volcano.sh/v1alpha1", "Job") },
		"of a batch Job":   admitted,
	}
	for name, w := range apis {
		for limit, test := range map[string]struct {
			w     builder
			facts lifecycle.Facts
			at    time.Duration
			want  string
		}{
			"of the LocalQueue": {w(), limiting("1h", "2h"), time.Hour, "1h, set by muster.dev/max-duration of LocalQueue q"},
			"of the ClusterQueue": {w(), limiting("2h", "1h"), time.Hour,
				"1h, set by muster.dev/max-duration of ClusterQueue cq"},
			"of its own": {w().limited(60), limiting("2h", "1h"), time.Minute,
				"1m, set by spec.maximumExecutionTimeSeconds of the Workload"},
		} {
			t.Run(name+", "+limit, func(t *testing.T) {
				if step := next(t, test.w, test.facts, lifecycle.Policy{}, test.at-time.Second); step.Object != nil ||
					step.Status != nil && workload.IsTrue(step.Status, kueue.WorkloadDeactivationTarget) {
					t.Errorf("before the limit the step is %+v", step)
				}
				expectConditions(t, next(t, test.w, test.facts, lifecycle.Policy{}, test.at), deactivates+test.want)
			})
		}
	}
}

// TestALimitBelowTheTimeThatAJobHasRunIsReached at once: when the limit of its queue was lowered, and when it is
// admitted anew after runs that used the limit up.
func TestALimitBelowTheTimeThatAJobHasRunIsReached(t *testing.T) {
	expectConditions(t, next(t, admitted(), limiting("", "1h"), lifecycle.Policy{}, 3*time.Hour),
		deactivates+"1h, set by muster.dev/max-duration of ClusterQueue cq")
	again := admitted()
	again.Status.AccumulatedPastExexcutionTimeSeconds = ptr.To[int32](7200)
	expectConditions(t, next(t, again, limiting("1h", ""), lifecycle.Policy{}, 0),
		deactivates+"1h, set by muster.dev/max-duration of LocalQueue q")
}

// TestAGenericJobIsPausedAtTheLimitOfItsQueue by its controller, and not deactivated. Its own limit deactivates it.
func TestAGenericJobIsPausedAtTheLimitOfItsQueue(t *testing.T) {
	w := func() builder { return admitted().of("batch.tensorstack.dev/v1beta1", "GenericJob") }
	step := next(t, w(), limiting("", "1h"), lifecycle.Policy{}, 2*time.Hour)
	if step.Object != nil || step.Status != nil && workload.IsTrue(step.Status, kueue.WorkloadDeactivationTarget) {
		t.Errorf("at the limit of the queue the step is %+v", step)
	}
	expectConditions(t, next(t, w(), limiting("", "1h"), lifecycle.Policy{}, 59*time.Minute),
		"muster.dev/TimeLimitNear=True TimeLimitNear: The job reaches its time limit at 2026-03-01T13:00:00Z, and it is paused then. The limit is 1h, set by muster.dev/max-duration of ClusterQueue cq")
	expectConditions(t, next(t, w().limited(7200), limiting("", "1h"), lifecycle.Policy{}, 2*time.Hour),
		deactivates+"2h, set by spec.maximumExecutionTimeSeconds of the Workload")
}

// TestAJobIsWarnedOnceBeforeItsLimit: an operator that starts again reads the warning from the Workload, whatever its
// clock says.
func TestAJobIsWarnedOnceBeforeItsLimit(t *testing.T) {
	facts := limiting("", "2h")
	expectDue(t, next(t, admitted(), facts, lifecycle.Policy{}, time.Hour), 110*time.Minute)
	step := next(t, admitted(), facts, lifecycle.Policy{}, 110*time.Minute)
	expectConditions(t, step, "muster.dev/TimeLimitNear=True TimeLimitNear: The job reaches its time limit at 2026-03-01T14:00:00Z, and its pods are stopped and its Workload is deactivated then. The limit is 2h, set by muster.dev/max-duration of ClusterQueue cq")
	expect(t, "due", step.Due, began.Add(2*time.Hour))
	warned := builder{step.Status}
	for _, after := range []time.Duration{110 * time.Minute, 119 * time.Minute, 10 * time.Minute, -time.Hour} {
		expectDue(t, next(t, warned, facts, lifecycle.Policy{}, after), 2*time.Hour)
	}
	if step := next(t, admitted(), limiting("", "119s"), lifecycle.Policy{}, 118*time.Second); step.Writes() {
		t.Errorf("with a limit below 2 minutes the step is %+v, want none", step)
	}
}

// TestAWarningIsTakenBackWithItsLimit, and another limit has a warning of its own.
func TestAWarningIsTakenBackWithItsLimit(t *testing.T) {
	warned := func() builder {
		return builder{next(t, admitted(), limiting("", "2h"), lifecycle.Policy{}, 115*time.Minute).Status}
	}
	for limit, facts := range map[string]lifecycle.Facts{"none": open(), "a later one": limiting("", "1d")} {
		step := next(t, warned(), facts, lifecycle.Policy{}, 116*time.Minute)
		if step.Status == nil || workload.IsTrue(step.Status, muster.TimeLimitNearCondition) {
			t.Errorf("when the limit is %s, the step is %+v, want no warning any more", limit, step)
		}
	}
	expectConditions(t, next(t, warned(), limiting("1h58m", "2h"), lifecycle.Policy{}, 116*time.Minute),
		"muster.dev/TimeLimitNear=True TimeLimitNear: The job reaches its time limit at 2026-03-01T13:58:00Z, and its pods are stopped and its Workload is deactivated then. The limit is 1h58m, set by muster.dev/max-duration of LocalQueue q")
	released := warned().Workload
	workload.Release(released, "Pending", "", began)
	if workload.IsTrue(released, muster.TimeLimitNearCondition) {
		t.Error("a Workload without quota has the warning, want it to go with the quota")
	}
}

// TestOnlyARunningJobIsWarned.
func TestOnlyARunningJobIsWarned(t *testing.T) {
	for name, w := range map[string]builder{
		"waiting":  pending(),
		"reserved": reserved().is(kueue.WorkloadAdmitted, metav1.ConditionFalse, "X").check("x", kueue.CheckStatePending),
		"evicted":  admitted().evicted(kueue.WorkloadEvictedByPreemption),
		"finished": admitted().is(kueue.WorkloadFinished, metav1.ConditionTrue, "Succeeded"),
	} {
		facts := limiting("", "2h")
		facts.ClusterQueue.Spec.AdmissionChecks = []kueue.AdmissionCheckReference{"x"}
		if name != "reserved" {
			facts.ClusterQueue.Spec.AdmissionChecks = nil
		}
		if step := next(t, w, facts, lifecycle.Policy{}, 119*time.Minute); step.Status != nil &&
			workload.IsTrue(step.Status, muster.TimeLimitNearCondition) {
			t.Errorf("a Workload that is %s is warned", name)
		}
	}
}
