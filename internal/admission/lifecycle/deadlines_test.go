package lifecycle_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/admission/lifecycle"
)

func TestWhenPodsMustBeReady(t *testing.T) {
	const ready = kueue.WorkloadPodsReady
	for name, test := range map[string]struct {
		workload builder
		deadline time.Duration // 0: never
	}{
		"admitted": {admitted(), 30 * time.Minute},
		"admitted, waiting for the start": {admitted().is(ready, metav1.ConditionFalse, kueue.WorkloadWaitForStart),
			30 * time.Minute},
		"after a failure": {admitted().is(ready, metav1.ConditionFalse, kueue.WorkloadWaitForRecovery),
			10 * time.Minute},
		"ready": {admitted().is(ready, metav1.ConditionTrue, kueue.WorkloadStarted), 0},
		"not admitted": {reserved().is(kueue.WorkloadAdmitted, metav1.ConditionFalse,
			kueue.WorkloadUnsatisfiedAdmissionChecks).check("x", "Pending"), 0},
		"no readiness reports": {admitted().bare(), 0},
		"no owner, with readiness reports": {admitted().bare().is(ready, metav1.ConditionFalse, kueue.WorkloadWaitForStart),
			30 * time.Minute},
		"no owner, after a failure": {admitted().bare().is(ready, metav1.ConditionFalse, kueue.WorkloadWaitForRecovery),
			10 * time.Minute},
		"being evicted": {admitted().evicted(kueue.WorkloadEvictedByPreemption), 0},
		"finished":      {admitted().is(kueue.WorkloadFinished, metav1.ConditionTrue, "Succeeded"), 0},
	} {
		t.Run(name, func(t *testing.T) {
			facts := checking("x")
			if test.deadline == 0 {
				if step := next(t, test.workload, facts, policy, 24*time.Hour); step.Writes() || !step.Due.IsZero() {
					t.Errorf("step = %+v, want none and no due time", step)
				}
				return
			}
			expectDue(t, next(t, test.workload, facts, policy, test.deadline-time.Second), test.deadline)
			expectConditions(t, next(t, test.workload, facts, policy, test.deadline),
				"Evicted=True PodsReadyTimeout: Exceeded the PodsReady timeout ns/a")
			if step := next(t, test.workload, facts, lifecycle.Policy{}, 24*time.Hour); step.Writes() {
				t.Errorf("step without a policy = %+v, want none", step)
			}
		})
	}
}

// TestALaterStageHasItsOwnTime to become ready, and the eviction says which pods it waited for.
func TestALaterStageHasItsOwnTime(t *testing.T) {
	w := admitted().is(kueue.WorkloadPodsReady, metav1.ConditionFalse, kueue.WorkloadWaitForStart)
	c := &w.Status.Conditions[len(w.Status.Conditions)-1]
	c.LastTransitionTime, c.Message = metav1.NewTime(began.Add(20*time.Minute)),
		"Waiting for the pods of b, which may start now"
	expectDue(t, next(t, w, open(), policy, 49*time.Minute), 50*time.Minute)
	step := next(t, w, open(), policy, 50*time.Minute)
	expectConditions(t, step, "Evicted=True PodsReadyTimeout: Exceeded the PodsReady timeout ns/a: Waiting for the pods of b, which may start now")
	expect(t, "evictions", step.Status.Status.SchedulingStats.Evictions, []kueue.WorkloadSchedulingStatsEviction{
		{Reason: "PodsReadyTimeout", UnderlyingCause: "WaitForStart", Count: 1}})
}

func TestTheBackoffDoublesWithEachTimeout(t *testing.T) {
	for tries, wait := range map[int32]time.Duration{0: time.Minute, 1: 2 * time.Minute, 4: 16 * time.Minute,
		5: 32 * time.Minute, 6: time.Hour, 100: time.Hour} {
		step := next(t, admitted().requeueState(tries, time.Time{}), open(), policy, 40*time.Minute)
		state := step.Status.Status.RequeueState
		if *state.Count != tries+1 || !state.RequeueAt.Time.Equal(began.Add(40*time.Minute+wait)) {
			t.Errorf("after %d attempts, the backoff ends %s after the start and its count is %d", tries,
				state.RequeueAt.Sub(began), *state.Count)
		}
	}
}

// TestABackoffLongerThanTheLongestEndsSooner: its end was written by a clock that was ahead, or under another
// configuration.
func TestABackoffLongerThanTheLongestEndsSooner(t *testing.T) {
	latest := began.Add(90 * time.Minute) // now and the longest backoff
	for name, test := range map[string]struct {
		reason    string
		end, want time.Time
	}{
		"written by a clock ahead": {kueue.WorkloadEvictedByPodsReadyTimeout, began.Add(365 * 24 * time.Hour), latest},
		"of a second more":         {kueue.WorkloadEvictedByPodsReadyTimeout, latest.Add(time.Second), latest},
		"the longest":              {kueue.WorkloadEvictedByPodsReadyTimeout, latest, latest},
		"as a check asked, of any size": {kueue.WorkloadEvictedByAdmissionCheck, latest.Add(24 * time.Hour),
			latest.Add(24 * time.Hour)},
	} {
		t.Run(name, func(t *testing.T) {
			w := pending().evicted(test.reason).is(kueue.WorkloadRequeued, metav1.ConditionFalse,
				test.reason).requeueState(3, test.end)
			step := next(t, w, open(), lifecycle.Policy{BackoffMax: time.Hour}, 30*time.Minute)
			if test.end.Equal(test.want) {
				expectDue(t, step, test.want.Sub(began))
				return
			}
			expect(t, "requeueState", step.Status.Status.RequeueState,
				&kueue.RequeueState{Count: ptr.To[int32](3), RequeueAt: ptr.To(metav1.NewTime(test.want))})
			expect(t, "due", step.Due, test.want)
		})
	}
}

func TestTheEvictionSaysWhichReadinessWasAwaited(t *testing.T) {
	step := next(t, admitted().is(kueue.WorkloadPodsReady, metav1.ConditionFalse, kueue.WorkloadWaitForRecovery), open(),
		policy, time.Hour)
	expect(t, "evictions", step.Status.Status.SchedulingStats.Evictions, []kueue.WorkloadSchedulingStatsEviction{
		{Reason: "PodsReadyTimeout", UnderlyingCause: "WaitForRecovery", Count: 1}})
}

func TestAWorkloadNeverReadyIsDeactivatedAtTheBackoffLimit(t *testing.T) {
	limited := *policy.PodsReady
	limited.BackoffLimit = ptr.To[int32](2)
	p := lifecycle.Policy{PodsReady: &limited}
	expectConditions(t, next(t, admitted().requeueState(1, time.Time{}), open(), p, time.Hour),
		"Evicted=True PodsReadyTimeout: Exceeded the PodsReady timeout ns/a")
	expectConditions(t, next(t, admitted().requeueState(2, time.Time{}), open(), p, time.Hour),
		"DeactivationTarget=True RequeuingLimitExceeded: exceeding the maximum number of re-queuing retries")
}

func TestTheExecutionTimeOfAllAdmissionsIsLimited(t *testing.T) {
	w := admitted().with(func(w *kueue.Workload) {
		w.Spec.MaximumExecutionTimeSeconds = ptr.To[int32](100)
		w.Status.AccumulatedPastExexcutionTimeSeconds = ptr.To[int32](40)
	})
	expectDue(t, next(t, w, open(), lifecycle.Policy{}, 59*time.Second), time.Minute)
	// The earlier of the two deadlines counts.
	expectDue(t, next(t, w, open(), policy, 59*time.Second), time.Minute)
	expectConditions(t, next(t, w, open(), policy, time.Minute),
		"DeactivationTarget=True MaximumExecutionTimeExceeded: exceeding the maximum execution time of 1m40s, set by spec.maximumExecutionTimeSeconds of the Workload")
}

func TestAClockSetBackEvictsNothing(t *testing.T) {
	w := admitted().with(func(w *kueue.Workload) { w.Spec.MaximumExecutionTimeSeconds = ptr.To[int32](7200) })
	expectDue(t, next(t, w, open(), policy, -time.Hour), 30*time.Minute)
}

func TestABackoffEndsInTheQueue(t *testing.T) {
	for _, reason := range []string{kueue.WorkloadEvictedByPodsReadyTimeout, kueue.WorkloadEvictedByAdmissionCheck} {
		t.Run(reason, func(t *testing.T) {
			w := pending().evicted(reason).is(kueue.WorkloadRequeued, metav1.ConditionFalse, reason).requeueState(2,
				began.Add(time.Hour))
			expectDue(t, next(t, w, open(), policy, time.Minute), time.Hour)
			step := next(t, w, open(), policy, time.Hour)
			expectConditions(t, step, "Requeued=True BackoffFinished: The workload backoff was finished")
			expect(t, "requeueState", step.Status.Status.RequeueState, &kueue.RequeueState{Count: ptr.To[int32](2)})
		})
	}
}

func TestTheRequeueTimeOfACheckIsClearedWhenItHasPassed(t *testing.T) {
	w := pending().requeueState(0, began.Add(time.Hour))
	expectDue(t, next(t, w, open(), policy, time.Minute), time.Hour)
	if step := next(t, w, open(), policy, time.Hour); step.Status == nil || step.Status.Status.RequeueState != nil {
		t.Errorf("step = %+v, want no requeueState", step)
	}
}

// TestAnEvictionSaysWhatKeptThePodsFromBeingReady: the pods are gone soon, and what was wrong with them would be too.
// At the last attempt the deactivation says it.
func TestAnEvictionSaysWhatKeptThePodsFromBeingReady(t *testing.T) {
	facts := open()
	facts.PodsProblem = "2 of 2 pods like a-0: ImagePullBackOff: no image x"
	step := next(t, admitted(), facts, policy, 40*time.Minute)
	expectConditions(t, step, "Evicted=True PodsReadyTimeout: Exceeded the PodsReady timeout ns/a: 2 of 2 pods like a-0: ImagePullBackOff: no image x")
	last := policy
	last.PodsReady = ptr.To(*policy.PodsReady)
	last.PodsReady.BackoffLimit = ptr.To[int32](0)
	deactivates := next(t, admitted(), facts, last, 40*time.Minute)
	expectConditions(t, deactivates,
		"DeactivationTarget=True RequeuingLimitExceeded: exceeding the maximum number of re-queuing retries: 2 of 2 pods like a-0: ImagePullBackOff: no image x")
	for name, tc := range map[string]struct {
		of   lifecycle.Step
		want bool
	}{
		"an eviction": {step, true}, "a deactivation": {deactivates, true},
		"before the deadline": {next(t, admitted(), facts, policy, time.Minute), false},
		"an eviction for a check": {next(t, admitted().check("x", kueue.CheckStateRetry), checking("x"), policy,
			time.Minute), false},
	} {
		if got := lifecycle.GivesUpPods(admitted().Workload, tc.of); got != tc.want {
			t.Errorf("%s gives up pods: %t, want %t", name, got, tc.want)
		}
	}
}
