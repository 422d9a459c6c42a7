package lifecycle_test

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/admission/lifecycle"
	"github.com/musterhq/muster/internal/workload"
)

func TestAReservedWorkloadIsAdmittedWhenAllChecksAreReady(t *testing.T) {
	for name, test := range map[string]struct {
		workload builder
		facts    lifecycle.Facts
		want     string
	}{
		"no checks": {reserved(), open(), "Admitted=True Admitted: The workload is admitted"},
		"both ready": {reserved().check("x", "Ready").check("y", "Ready"), checking("x", "y"),
			"Admitted=True Admitted: The workload is admitted"},
		"one pending": {reserved().check("x", "Ready").check("y", "Pending"), checking("x", "y"),
			"Admitted=False UnsatisfiedAdmissionChecks: The workload has not all checks ready"},
		"the last one removed": {reserved().check("x", "Pending"), open(),
			"Admitted=True Admitted: The workload is admitted"},
		"one added": {reserved().check("x", "Ready"), checking("x", "y"),
			"Admitted=False UnsatisfiedAdmissionChecks: The workload has not all checks ready"},
		"places awaited": {reserved().with(func(w *kueue.Workload) {
			w.Status.Admission.PodSetAssignments[0].DelayedTopologyRequest = ptr.To(kueue.DelayedTopologyRequestStatePending)
		}), open(), "Admitted=False PendingDelayedTopologyRequests: There are pending delayed topology requests"},
	} {
		t.Run(name, func(t *testing.T) { expectConditions(t, next(t, test.workload, test.facts, policy, 0), test.want) })
	}
}

func TestTheListOfChecksFollowsTheQueueAndKeepsStates(t *testing.T) {
	w := reserved().check("gone", kueue.CheckStateRetry).check("y", kueue.CheckStateReady)
	step := next(t, w, checking("x", "y"), policy, time.Minute)
	expect(t, "checks", step.Status.Status.AdmissionChecks, []kueue.AdmissionCheckState{
		{Name: "x", State: kueue.CheckStatePending, LastTransitionTime: metav1.NewTime(began.Add(time.Minute))},
		{Name: "y", State: kueue.CheckStateReady, Message: "says y", LastTransitionTime: metav1.NewTime(began)},
	})
	if workload.IsEvicted(step.Status) {
		t.Error("the Workload was evicted by a removed check")
	}
}

func TestTheOrderOfChecksDoesNotMatter(t *testing.T) {
	w := reserved().check("y", "Pending").check("x", "Pending").is(kueue.WorkloadAdmitted, "False",
		kueue.WorkloadUnsatisfiedAdmissionChecks)
	if step := next(t, w, checking("x", "y"), policy, 0); step.Writes() {
		t.Errorf("step = %+v, want none", step)
	}
}

func TestTheChecksOfAnAdmittedWorkloadStay(t *testing.T) {
	if step := next(t, admitted().check("x", kueue.CheckStateReady), checking("y"), lifecycle.Policy{}, 0); step.Writes() {
		t.Errorf("step = %+v, want none", step)
	}
}

func TestChecksFor(t *testing.T) {
	rules := []kueue.AdmissionCheckStrategyRule{
		{Name: "z"}, {Name: "of-f", OnFlavors: []kueue.ResourceFlavorReference{"f", "g"}},
		{Name: "of-g", OnFlavors: []kueue.ResourceFlavorReference{"g"}}, {Name: "z"},
	}
	spec := kueue.ClusterQueueSpec{AdmissionChecksStrategy: &kueue.AdmissionChecksStrategy{AdmissionChecks: rules}}
	expect(t, "checks", lifecycle.ChecksFor(&spec, reserved().Status.Admission),
		[]kueue.AdmissionCheckReference{"z", "of-f"})
	expect(t, "checks before there are flavors", lifecycle.ChecksFor(&spec, nil), []kueue.AdmissionCheckReference{"z"})
	spec = kueue.ClusterQueueSpec{AdmissionChecks: []kueue.AdmissionCheckReference{"b", "a"}}
	expect(t, "checks of the list", lifecycle.ChecksFor(&spec, reserved().Status.Admission),
		[]kueue.AdmissionCheckReference{"b", "a"})
}

// TestMoreChecksThanAStatusCanListKeepAWorkloadFromStarting: the status of one that reserved quota before there were so
// many must remain valid, or nothing about it could be written any more.
func TestMoreChecksThanAStatusCanListKeepAWorkloadFromStarting(t *testing.T) {
	names := []kueue.AdmissionCheckReference{"a", "b", "c", "d", "e", "f", "g", "h", "i"}
	w := reserved()
	for _, name := range names[:8] {
		w = w.check(string(name), kueue.CheckStateReady)
	}
	step := next(t, w, checking(names...), policy, 0)
	expectConditions(t, step, "Admitted=False UnsatisfiedAdmissionChecks: The workload has not all checks ready")
	if n := len(step.Status.Status.AdmissionChecks); n != 8 {
		t.Errorf("the status lists %d checks, want 8", n)
	}
	expectConditions(t, next(t, w, checking(names[:8]...), policy, 0), "Admitted=True Admitted: The workload is admitted")
	step = next(t, reserved(), checking(names...), policy, 0)
	if n := len(step.Status.Status.AdmissionChecks); n != 8 {
		t.Errorf("the status lists %d checks, want 8", n)
	}
}

func TestChecksOfOneFlavorAreAProblemIfThereAreTooMany(t *testing.T) {
	rules, checks := []kueue.AdmissionCheckStrategyRule{{Name: "all"}}, map[string]*kueue.AdmissionCheck{}
	for _, name := range strings.Split("a b c d e f g h", " ") {
		rules = append(rules, kueue.AdmissionCheckStrategyRule{Name: kueue.AdmissionCheckReference(name),
			OnFlavors: []kueue.ResourceFlavorReference{"f"}})
	}
	rules[8].OnFlavors = append(rules[8].OnFlavors, "g")
	for _, rule := range rules {
		checks[string(rule.Name)] =
			&kueue.AdmissionCheck{Status: kueue.AdmissionCheckStatus{
				Conditions: []metav1.Condition{{Type: kueue.AdmissionCheckActive, Status: "True"}}}}
	}
	problem := func(rules []kueue.AdmissionCheckStrategyRule) string {
		_, message := lifecycle.ChecksProblem(
			&kueue.ClusterQueueSpec{AdmissionChecksStrategy: &kueue.AdmissionChecksStrategy{AdmissionChecks: rules}}, checks)
		return message
	}
	expect(t, "problem of 9", problem(rules),
		"Can't admit new workloads: 9 AdmissionChecks apply to flavor f, and a Workload can have only 8; remove some")
	expect(t, "problem of 8", problem(rules[1:]), "")
}

func TestARejectedCheckDeactivatesTheWorkload(t *testing.T) {
	const want = `DeactivationTarget=True AdmissionCheck: AdmissionCheck in Rejected state: "x" (says x), "y" (says y)`
	for name, w := range map[string]builder{"that waits": pending(), "that holds quota": reserved(),
		"that runs": admitted()} {
		t.Run(name, func(t *testing.T) {
			w := w.check("x", kueue.CheckStateRejected).check("y", kueue.CheckStateRejected)
			expectConditions(t, next(t, w, checking("x", "y"), policy, 0), want)
		})
	}
}

func TestARetryCheckEvicts(t *testing.T) {
	w := admitted().check("x", kueue.CheckStateRetry).retryAfter(90).check("y", kueue.CheckStateRetry).retryAfter(30).
		check("z", kueue.CheckStateReady)
	step := next(t, w, checking("x", "y", "z"), policy, time.Minute)
	expectConditions(t, step, `Evicted=True AdmissionCheck: AdmissionCheck in Retry state: "x" (says x), "y" (says y)`)
	if at := step.Status.Status.RequeueState.RequeueAt; !at.Time.Equal(began.Add(90 * time.Second)) {
		t.Errorf("requeueAt = %s, want 90 s after the start", at)
	}
	if !workload.HoldsQuota(step.Status) || step.Status.Status.AdmissionChecks[2].State != kueue.CheckStatePending {
		t.Errorf("status = %+v, want quota held and the check Pending", step.Status.Status)
	}
}

func TestALateRetryCheckKeepsTheWorkloadOutOfItsQueue(t *testing.T) {
	step := next(t, pending().check("x", kueue.CheckStateRetry).retryAfter(90), checking("x"), policy, time.Minute)
	expectConditions(t, step, `Requeued=False AdmissionCheck: AdmissionCheck in Retry state: "x" (says x)`)
	if state := step.Status.Status; state.AdmissionChecks[0].State != kueue.CheckStatePending ||
		!state.RequeueState.RequeueAt.Time.Equal(began.Add(90*time.Second)) {
		t.Errorf("status = %+v, want the check Pending and a requeue after 90 s", state)
	}
	if !step.Due.Equal(began.Add(90 * time.Second)) {
		t.Errorf("due at %s, want after 90 s", step.Due)
	}
}

func TestChecksProblem(t *testing.T) {
	check := func(active metav1.ConditionStatus) *kueue.AdmissionCheck {
		return &kueue.AdmissionCheck{Status: kueue.AdmissionCheckStatus{
			Conditions: []metav1.Condition{{Type: kueue.AdmissionCheckActive, Status: active}}}}
	}
	checks := map[string]*kueue.AdmissionCheck{"active": check("True"), "inactive": check("False"), "new": {}}
	for i := range 9 {
		checks[string(rune('a'+i))] = check("True")
	}
	for name, test := range map[string]struct {
		checks          []kueue.AdmissionCheckReference
		reason, message string
	}{
		"no checks":       {nil, "", ""},
		"an active check": {[]kueue.AdmissionCheckReference{"active"}, "", ""},
		"missing checks": {[]kueue.AdmissionCheckReference{"z", "inactive", "y"},
			"AdmissionCheckNotFound", "Can't admit new workloads: references missing AdmissionCheck(s): [y z]"},
		"inactive checks, one without status": {[]kueue.AdmissionCheckReference{"new", "inactive", "active"},
			"AdmissionCheckInactive", "Can't admit new workloads: references inactive AdmissionCheck(s): [inactive new]"},
		"more checks than a status may have": {[]kueue.AdmissionCheckReference{"a", "b", "c", "d", "e", "f", "g",
			"h", "i"}, "Unknown",
			"Can't admit new workloads: 9 AdmissionChecks apply to every flavor, and a Workload can have only 8; restrict some with onFlavors"},
	} {
		t.Run(name, func(t *testing.T) {
			reason, message := lifecycle.ChecksProblem(&kueue.ClusterQueueSpec{AdmissionChecks: test.checks}, checks)
			expect(t, "reason", reason, test.reason)
			expect(t, "message", message, test.message)
		})
	}
}
