package lifecycle_test

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
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
		t.Errorf("step = %+v, want spec.active false", step)
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
		t.Errorf("status = %+v, want quota held and no requeueState", step.Status.Status)
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
	w := pending().inactive().evicted(kueue.WorkloadEvictedByPreemption).is(kueue.WorkloadRequeued, metav1.ConditionTrue,
		kueue.WorkloadEvictedByPreemption)
	step := next(t, w, open(), policy, time.Minute)
	expectConditions(t, step, "Evicted=True Deactivated: The workload is deactivated",
		"Requeued=False Deactivated: The workload is deactivated")

	w = admitted().inactive().evicted(kueue.WorkloadEvictedByPreemption).is(target, metav1.ConditionTrue,
		kueue.WorkloadEvictedByAdmissionCheck)
	step = next(t, w, open(), policy, time.Minute)
	if !workload.HoldsQuota(step.Status) {
		t.Error("it has no quota while its pods are being stopped, want that it keeps it")
	}
	if step := next(t, builder{step.Status}, open(), policy, time.Minute); step.Writes() {
		t.Errorf("second step while its pods are being stopped = %+v, want none", step)
	}
}

// TestADeactivationDuringAnotherEvictionIsSaid: whoever waits for the Workload to come back reads in its condition
// Evicted that it will not, before its pods are gone.
func TestADeactivationDuringAnotherEvictionIsSaid(t *testing.T) {
	const back = "; it does not return to its queue: The workload is deactivated"
	for name, tc := range map[string]struct {
		w    builder
		want string
	}{
		"a rejection after a retry": {
			admitted().inactive().evicted(kueue.WorkloadEvictedByAdmissionCheck).is(target, metav1.ConditionTrue,
				kueue.WorkloadEvictedByAdmissionCheck),
			"Evicted=True AdmissionCheck: because" + back + " due to because"},
		"a rejection after a preemption": {
			admitted().inactive().evicted(kueue.WorkloadEvictedByPreemption).is(target, metav1.ConditionTrue,
				kueue.WorkloadEvictedByAdmissionCheck),
			"Evicted=True Preempted: because" + back + " due to because"},
		"a user after a lost node": {
			admitted().inactive().evicted(kueue.WorkloadEvictedDueToNodeFailures),
			"Evicted=True NodeFailures: because" + back},
	} {
		t.Run(name, func(t *testing.T) { expectConditions(t, next(t, tc.w, open(), policy, time.Minute), tc.want) })
	}
	long := admitted().inactive().evicted(kueue.WorkloadEvictedByPreemption).with(func(w *kueue.Workload) {
		for i := range w.Status.Conditions {
			w.Status.Conditions[i].Message = strings.Repeat("x", workload.ConditionMessageBytes)
		}
	})
	step := next(t, long, open(), policy, time.Minute)
	said := meta.FindStatusCondition(step.Status.Status.Conditions, kueue.WorkloadEvicted).Message
	if len(said) > workload.ConditionMessageBytes || !strings.HasSuffix(said, back) {
		t.Errorf("a message of %d bytes ends in %q, want at most %d bytes and the deactivation", len(said),
			said[len(said)-40:], workload.ConditionMessageBytes)
	}
}

func TestADeactivationEndsTheBackoff(t *testing.T) {
	w := pending().inactive().evicted(kueue.WorkloadDeactivated).requeueState(2, began.Add(time.Hour))
	if step := next(t, w, open(), policy, 0); step.Status == nil || step.Status.Status.RequeueState != nil {
		t.Errorf("step = %+v, want no requeueState", step)
	}
}

func TestAReactivatedWorkloadIsRequeued(t *testing.T) {
	for _, reason := range []string{kueue.WorkloadDeactivated,
		kueue.WorkloadDeactivatedDueTo + kueue.WorkloadRequeuingLimitExceeded} {
		w := pending().evicted(reason).is(kueue.WorkloadRequeued, metav1.ConditionFalse, reason)
		expectConditions(t, next(t, w, open(), policy, 0), "Requeued=True Reactivated: The workload was reactivated",
			"QuotaReserved=False PendingEvaluation: Workload is pending evaluation in the scheduling queue")
	}
}

func TestASecondDeactivationLeavesTheQueueAgain(t *testing.T) {
	w := pending().inactive().evicted(kueue.WorkloadDeactivated).is(kueue.WorkloadRequeued, metav1.ConditionTrue,
		kueue.WorkloadReactivated)
	expectConditions(t, next(t, w, open(), policy, time.Minute), "Evicted=True Deactivated: The workload is deactivated",
		"Requeued=False Deactivated: The workload is deactivated")
}

func TestARejectionAfterADeactivationIsHandledOnce(t *testing.T) {
	w := pending().inactive().evicted(kueue.WorkloadDeactivated).check("x", kueue.CheckStateRejected).is(target,
		metav1.ConditionTrue, kueue.WorkloadEvictedByAdmissionCheck)
	step := next(t, w, open(), policy, time.Minute)
	expectConditions(t, step, "Evicted=True DeactivatedDueToAdmissionCheck: The workload is deactivated due to because")
	if check := step.Status.Status.AdmissionChecks[0]; check.State != kueue.CheckStatePending {
		t.Errorf("check = %+v, want it Pending: otherwise the Workload is deactivated again", check)
	}
}

func TestABareWorkloadReleasesItsQuotaWithItsEviction(t *testing.T) {
	step := next(t, admitted().bare().inactive(), open(), policy, time.Minute)
	if step.Status == nil || workload.HoldsQuota(step.Status) {
		t.Fatalf("step = %+v, want the quota released", step)
	}
	expect(t, "conditions", status(step), []string{
		"Admitted=False NoReservation: The workload has no reservation",
		"Evicted=True Deactivated: The workload is deactivated",
		"QuotaReserved=False Deactivated: The workload is deactivated",
		"Requeued=False Deactivated: The workload is deactivated",
	})
	if step = next(t, builder{step.Status}, open(), policy, time.Minute); step.Writes() {
		t.Errorf("next step = %+v, want none", step)
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
		"a finished Workload":                    {over(admitted()), lifecycle.TheWorkload, time.Hour},
		"a Workload deactivated by the operator": {ours, lifecycle.TheJob, 2 * time.Hour},
		"a Workload without owner deactivated by the operator": {builder{ours.DeepCopy()}.bare(),
			lifecycle.TheWorkload, 2 * time.Hour},
		"a Workload deactivated by a user": {pending().inactive().
			evicted(kueue.WorkloadDeactivated), lifecycle.Nothing, 0},
		"a Workload deactivated by the operator whose pods still run": {admitted().inactive().
			evicted(kueue.WorkloadDeactivatedDueTo + "X"), lifecycle.Nothing, 0},
		"a Workload deactivated by the operator and activated again": {pending().
			evicted(kueue.WorkloadDeactivatedDueTo + "X"), lifecycle.Nothing, 0},
	} {
		t.Run(name, func(t *testing.T) {
			if test.due > 0 {
				expectDue(t, next(t, test.workload, open(), keep, test.due-time.Second), test.due)
			}
			if step := next(t, test.workload, open(), keep, 24*time.Hour); step.Delete != test.delete {
				t.Errorf("step = %+v, want deletion of %v", step, test.delete)
			}
			if step := next(t, test.workload, open(), lifecycle.Policy{}, 24*time.Hour); step.Delete != lifecycle.Nothing {
				t.Errorf("step without a policy = %+v, want no deletion", step)
			}
		})
	}
}

// orphan returns the Workload as it is when its job was deleted without what it owned.
func orphan(b builder) builder {
	return b.bare().with(func(w *kueue.Workload) { w.Labels = map[string]string{kueue.JobUIDLabel: "job"} })
}

// TestAnOrphanIsFinishedOnceItHoldsNoQuota: while it holds quota, pods of its job may run. So it keeps its quota when
// it is evicted, too, and its finalizer when it is deleted.
func TestAnOrphanIsFinishedOnceItHoldsNoQuota(t *testing.T) {
	expectConditions(t, next(t, orphan(pending()), open(), policy, 0),
		"Finished=True OwnerNotFound: The job that the workload was created for no longer exists")
	for name, w := range map[string]builder{
		"running":     orphan(admitted()),
		"evicted":     orphan(admitted().evicted(kueue.WorkloadEvictedByPreemption)),
		"deactivated": orphan(admitted().inactive().evicted(kueue.WorkloadDeactivated)),
		"deleted": orphan(admitted()).with(func(w *kueue.Workload) {
			w.DeletionTimestamp, w.Finalizers = ptr.To(metav1.NewTime(began)), []string{kueue.ResourceInUseFinalizer}
		}),
	} {
		if step := next(t, w, open(), policy, 0); step.Object != nil || step.Delete != lifecycle.Nothing ||
			step.Status != nil && step.Status.Status.Admission == nil {
			t.Errorf("%s: step = %+v, want its quota kept", name, step)
		}
	}
	// It is evicted like others: package jobs/controller stops its pods.
	if step := next(t, orphan(admitted().inactive()), open(), policy, 0); step.Status == nil ||
		step.Status.Status.Admission == nil ||
		!meta.IsStatusConditionTrue(step.Status.Status.Conditions, kueue.WorkloadEvicted) {
		t.Errorf("deactivated just now: step = %+v, want it evicted, with its quota", step)
	}
}

// TestAnOrphanDoesNotStayForEver: there is no job with which its Workload would be deleted.
func TestAnOrphanDoesNotStayForEver(t *testing.T) {
	over := func(b builder) builder { return b.is(kueue.WorkloadFinished, metav1.ConditionTrue, "Succeeded") }
	for name, w := range map[string]builder{"of a job that had ended": orphan(over(admitted())),
		"that waited": orphan(over(pending()))} {
		expectDue(t, next(t, w, open(), lifecycle.Policy{}, time.Minute), 5*time.Minute)
		if step := next(t, w, open(), lifecycle.Policy{}, 5*time.Minute); step.Delete != lifecycle.TheWorkload {
			t.Errorf("%s: step = %+v, want it deleted after five minutes", name, step)
		}
		expectDue(t, next(t, w, open(), lifecycle.Policy{AfterFinished: ptr.To(time.Hour)}, 5*time.Minute), time.Hour)
	}
	if step := next(t, over(admitted()), open(), lifecycle.Policy{}, 24*time.Hour); step.Delete != lifecycle.Nothing {
		t.Errorf("with a job: step = %+v, want it kept", step)
	}
}

func TestTheFinalizerOfAMigratedWorkloadIsRemoved(t *testing.T) {
	deleted := func(b builder) builder {
		return b.with(func(w *kueue.Workload) {
			w.DeletionTimestamp, w.Finalizers = ptr.To(metav1.NewTime(began)), []string{"a", kueue.ResourceInUseFinalizer}
		})
	}
	for name, test := range map[string]struct {
		workload builder
		removed  bool
	}{
		"a Workload without owner": {deleted(admitted().bare()), true},
		"a finished Workload": {deleted(admitted().is(kueue.WorkloadFinished, metav1.ConditionTrue,
			"Succeeded")), true},
		"a Workload with a job": {deleted(admitted()), false},
		"another finalizer": {deleted(admitted().bare()).
			with(func(w *kueue.Workload) { w.Finalizers = []string{"a"} }), false},
		"a Workload that is not being deleted": {admitted().bare().
			with(func(w *kueue.Workload) { w.Finalizers = []string{kueue.ResourceInUseFinalizer} }), false},
	} {
		t.Run(name, func(t *testing.T) {
			step := next(t, test.workload, open(), policy, 0)
			if removed := step.Object != nil; removed != test.removed {
				t.Fatalf("step = %+v, want the finalizer removed: %t", step, test.removed)
			}
			if test.removed {
				expect(t, "finalizers", step.Object.Finalizers, []string{"a"})
			}
		})
	}
}
