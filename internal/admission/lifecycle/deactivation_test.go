package lifecycle_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/admission/lifecycle"
	"github.com/musterhq/muster/internal/workload"
)

const target = kueue.WorkloadDeactivationTarget

func TestADeactivationTargetIsDeactivated(t *testing.T) {
	step := next(t, admitted().is(target, metav1.ConditionTrue, kueue.WorkloadRequeuingLimitExceeded), open(), policy, 0)
	if step.Object == nil || *step.Object.Spec.Active {
		t.Errorf("the step is %+v", step)
	}
}

func TestADeactivatedWorkloadKeepsItsQuotaUntilItsPodsAreGone(t *testing.T) {
	step := next(t, admitted().inactive().requeueState(3, began), open(), policy, time.Minute)
	expect(t, "conditions", status(step), []string{
		"Admitted=True Admitted: because",
		"Evicted=True Deactivated: The workload is deactivated",
		"QuotaReserved=True QuotaReserved: because",
	})
	if !workload.HoldsQuota(step.Status) || step.Status.Status.RequeueState != nil {
		t.Errorf("the status is %+v", step.Status.Status)
	}
}

func TestTheEvictionReasonHasTheCauseOfADeactivation(t *testing.T) {
	w := admitted().inactive().is(target, metav1.ConditionTrue, kueue.WorkloadMaximumExecutionTimeExceeded)
	step := next(t, w, open(), policy, time.Minute)
	expect(t, "conditions", status(step), []string{
		"Admitted=True Admitted: because",
		"Evicted=True DeactivatedDueToMaximumExecutionTimeExceeded: The workload is deactivated due to because",
		"QuotaReserved=True QuotaReserved: because",
	})
	expect(t, "evictions", step.Status.Status.SchedulingStats.Evictions, []kueue.WorkloadSchedulingStatsEviction{
		{Reason: "Deactivated", UnderlyingCause: "MaximumExecutionTimeExceeded", Count: 1}})
}

func TestDeactivationInTheQueueIsOneWrite(t *testing.T) {
	step := next(t, pending().inactive(), open(), policy, 0)
	expect(t, "conditions", status(step), []string{
		"Admitted=False NoReservation: The workload has no reservation",
		"Evicted=True Deactivated: The workload is deactivated",
		"QuotaReserved=False Deactivated: The workload is deactivated",
		"Requeued=False Deactivated: The workload is deactivated",
	})
}

func TestAPreemptedWorkloadIsDeactivatedAfterItsQuotaIsReleased(t *testing.T) {
	w := pending().inactive().evicted(kueue.WorkloadEvictedByPreemption).is(kueue.WorkloadRequeued, metav1.ConditionTrue, kueue.WorkloadEvictedByPreemption)
	step := next(t, w, open(), policy, time.Minute)
	expectConditions(t, step, "Evicted=True Deactivated: The workload is deactivated", "Requeued=False Deactivated: The workload is deactivated")

	w = admitted().inactive().evicted(kueue.WorkloadEvictedByPreemption).is(target, metav1.ConditionTrue, kueue.WorkloadEvictedByAdmissionCheck)
	if step := next(t, w, open(), policy, time.Minute); step.Writes() {
		t.Errorf("while its pods are being stopped, the step is %+v", step)
	}
}

func TestADeactivationEndsTheBackoff(t *testing.T) {
	w := pending().inactive().evicted(kueue.WorkloadDeactivated).requeueState(2, began.Add(time.Hour))
	if step := next(t, w, open(), policy, 0); step.Status == nil || step.Status.Status.RequeueState != nil {
		t.Errorf("the step is %+v", step)
	}
}

func TestAReactivatedWorkloadIsRequeued(t *testing.T) {
	for _, reason := range []string{kueue.WorkloadDeactivated, kueue.WorkloadDeactivatedDueTo + kueue.WorkloadRequeuingLimitExceeded} {
		w := pending().evicted(reason).is(kueue.WorkloadRequeued, metav1.ConditionFalse, reason)
		expectConditions(t, next(t, w, open(), policy, 0), "Requeued=True Reactivated: The workload was reactivated",
			"QuotaReserved=False PendingEvaluation: Workload is pending evaluation in the scheduling queue")
	}
}

func TestASecondDeactivationLeavesTheQueueAgain(t *testing.T) {
	w := pending().inactive().evicted(kueue.WorkloadDeactivated).is(kueue.WorkloadRequeued, metav1.ConditionTrue, kueue.WorkloadReactivated)
	expectConditions(t, next(t, w, open(), policy, time.Minute), "Evicted=True Deactivated: The workload is deactivated",
		"Requeued=False Deactivated: The workload is deactivated")
}

func TestARejectionAfterADeactivationIsHandledOnce(t *testing.T) {
	w := pending().inactive().evicted(kueue.WorkloadDeactivated).check("x", kueue.CheckStateRejected).is(target, metav1.ConditionTrue, kueue.WorkloadEvictedByAdmissionCheck)
	step := next(t, w, open(), policy, time.Minute)
	expectConditions(t, step, "Evicted=True DeactivatedDueToAdmissionCheck: The workload is deactivated due to because")
	if check := step.Status.Status.AdmissionChecks[0]; check.State != kueue.CheckStatePending {
		t.Errorf("it would be deactivated for it again: the check is %+v", check)
	}
}

func TestABareWorkloadReleasesItsQuotaWithItsEviction(t *testing.T) {
	step := next(t, admitted().bare().inactive(), open(), policy, time.Minute)
	if step.Status == nil || workload.HoldsQuota(step.Status) {
		t.Fatalf("the step is %+v", step)
	}
	expect(t, "conditions", status(step), []string{
		"Admitted=False NoReservation: The workload has no reservation",
		"Evicted=True Deactivated: The workload is deactivated",
		"QuotaReserved=False Deactivated: The workload is deactivated",
		"Requeued=False Deactivated: The workload is deactivated",
	})
	if step = next(t, builder{step.Status}, open(), policy, time.Minute); step.Writes() {
		t.Errorf("then follows %+v", step)
	}
}

func TestABareWorkloadEvictedByAnotherClientIsRequeuedAtOnce(t *testing.T) {
	step := next(t, admitted().bare().evicted(kueue.WorkloadEvictedByPreemption), open(), policy, time.Minute)
	expectConditions(t, step, "Requeued=True Preempted: because", "QuotaReserved=False PendingEvaluation: because")
}

func TestRetention(t *testing.T) {
	keep := lifecycle.Policy{AfterFinished: ptr.To(time.Hour), AfterDeactivated: ptr.To(2 * time.Hour)}
	over := func(b builder) builder { return b.is(kueue.WorkloadFinished, metav1.ConditionTrue, "Succeeded") }
	ours := pending().inactive().evicted(kueue.WorkloadDeactivatedDueTo + kueue.WorkloadRequeuingLimitExceeded)
	for name, test := range map[string]struct {
		workload builder
		delete   lifecycle.Deletion
		due      time.Duration
	}{
		"a finished Workload is deleted, and its job is kept":        {over(admitted()), lifecycle.TheWorkload, time.Hour},
		"one that was deactivated here is deleted with its job":      {ours, lifecycle.TheJob, 2 * time.Hour},
		"a bare one that was deactivated here is deleted":            {builder{ours.DeepCopy()}.bare(), lifecycle.TheWorkload, 2 * time.Hour},
		"one that a person has deactivated is kept":                  {pending().inactive().evicted(kueue.WorkloadDeactivated), lifecycle.Nothing, 0},
		"one that was deactivated here is kept while its pods run":   {admitted().inactive().evicted(kueue.WorkloadDeactivatedDueTo + "X"), lifecycle.Nothing, 0},
		"one that was deactivated here and activated again, is kept": {pending().evicted(kueue.WorkloadDeactivatedDueTo + "X"), lifecycle.Nothing, 0},
	} {
		t.Run(name, func(t *testing.T) {
			if test.due > 0 {
				expectDue(t, next(t, test.workload, open(), keep, test.due-time.Second), test.due)
			}
			if step := next(t, test.workload, open(), keep, 24*time.Hour); step.Delete != test.delete {
				t.Errorf("the step is %+v", step)
			}
			if step := next(t, test.workload, open(), lifecycle.Policy{}, 24*time.Hour); step.Delete != lifecycle.Nothing {
				t.Errorf("without a policy, the step is %+v", step)
			}
		})
	}
}

func TestAnOrphanIsFinished(t *testing.T) {
	w := admitted().bare().with(func(w *kueue.Workload) { w.Labels = map[string]string{kueue.JobUIDLabel: "job"} })
	expectConditions(t, next(t, w, open(), policy, 0), "Finished=True OwnerNotFound: The job that the workload was created for no longer exists")
}

func TestTheFinalizerOfAMigratedWorkloadIsRemoved(t *testing.T) {
	deleted := func(b builder) builder {
		return b.with(func(w *kueue.Workload) {
			w.DeletionTimestamp, w.Finalizers = ptr.To(metav1.NewTime(began)), []string{"a", kueue.ResourceInUseFinalizer}
		})
	}
	for name, test := range map[string]struct {
		workload builder
		goes     bool
	}{
		"of a bare Workload":                   {deleted(admitted().bare()), true},
		"of one that is over":                  {deleted(admitted().is(kueue.WorkloadFinished, metav1.ConditionTrue, "Succeeded")), true},
		"of one with a job":                    {deleted(admitted()), false},
		"but not another finalizer":            {deleted(admitted().bare()).with(func(w *kueue.Workload) { w.Finalizers = []string{"a"} }), false},
		"but not before the Workload is to go": {admitted().bare().with(func(w *kueue.Workload) { w.Finalizers = []string{kueue.ResourceInUseFinalizer} }), false},
	} {
		t.Run(name, func(t *testing.T) {
			step := next(t, test.workload, open(), policy, 0)
			if goes := step.Object != nil; goes != test.goes {
				t.Fatalf("the step is %+v", step)
			}
			if test.goes {
				expect(t, "finalizers", step.Object.Finalizers, []string{"a"})
			}
		})
	}
}
