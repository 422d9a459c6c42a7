package workload_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/workload"
)

var (
	began = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	now   = began.Add(90 * time.Second)
)

// admitted returns a job's Workload that has run since began, with all pods ready.
func admitted() *kueue.Workload {
	w := &kueue.Workload{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a", Generation: 3,
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: "a", UID: "job",
			Controller: ptr.To(true)}}}}
	w.Status.Admission = &kueue.Admission{ClusterQueue: "cq"}
	workload.SetCondition(w, kueue.WorkloadQuotaReserved, metav1.ConditionTrue,
		kueue.WorkloadQuotaReservedReason, "", began)
	workload.SetCondition(w, kueue.WorkloadAdmitted, metav1.ConditionTrue, kueue.WorkloadAdmittedReason, "", began)
	workload.SetCondition(w, kueue.WorkloadPodsReady, metav1.ConditionTrue, kueue.WorkloadStarted, "", began)
	return w
}

func conditions(w *kueue.Workload) []string {
	var out []string
	for _, c := range w.Status.Conditions {
		out = append(out, fmt.Sprintf("%s=%s %s: %s", c.Type, c.Status, c.Reason, c.Message))
	}
	slices.Sort(out)
	return out
}

func expect(t *testing.T, what string, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func TestAnEvictedWorkloadKeepsItsQuota(t *testing.T) {
	w := admitted()
	workload.Evict(w, workload.Eviction{Reason: kueue.WorkloadEvictedByPreemption, Cause: kueue.InClusterQueueReason,
		Message: "because"}, now)
	if !workload.HoldsQuota(w) || !workload.IsAdmitted(w) {
		t.Error("the Workload released its quota while its pods run")
	}
	expect(t, "conditions", conditions(w), []string{
		"Admitted=True Admitted: ",
		"Evicted=True Preempted: because",
		"PodsReady=True Started: ",
		"QuotaReserved=True QuotaReserved: ",
	})
}

func TestAnUnownedWorkloadReleasesItsQuotaWithItsEviction(t *testing.T) {
	w := admitted()
	w.OwnerReferences = nil
	workload.Evict(w, workload.Eviction{Reason: kueue.WorkloadEvictedByPreemption, Cause: kueue.InClusterQueueReason,
		Message: "because"}, now)
	if workload.HoldsQuota(w) {
		t.Error("the Workload holds quota, want it released")
	}
	expect(t, "conditions", conditions(w), []string{
		"Admitted=False NoReservation: The workload has no reservation",
		"Evicted=True Preempted: because",
		"QuotaReserved=False PendingEvaluation: because",
		"Requeued=True Preempted: because",
	})
}

func TestADeactivationHasItsCauseInTheReason(t *testing.T) {
	w := admitted()
	workload.Evict(w, workload.Eviction{Reason: kueue.WorkloadDeactivated,
		Cause: kueue.WorkloadRequeuingLimitExceeded}, now)
	if !slices.Contains(conditions(w), "Evicted=True DeactivatedDueToRequeuingLimitExceeded: ") {
		t.Errorf("conditions = %q", conditions(w))
	}
}

func TestAnEvictionResetsChecks(t *testing.T) {
	w := admitted()
	updates := []kueue.PodSetUpdate{{Name: "main", Labels: map[string]string{"a": "b"}}}
	w.Status.AdmissionChecks = []kueue.AdmissionCheckState{
		{Name: "ready", State: kueue.CheckStateReady, Message: "nodes are there", PodSetUpdates: updates,
			LastTransitionTime: metav1.NewTime(began)},
		{Name: "retry", State: kueue.CheckStateRetry, Message: "no nodes", RequeueAfterSeconds: ptr.To[int32](5),
			RetryCount: ptr.To[int32](1)},
		{Name: "pending", State: kueue.CheckStatePending, Message: "looking", LastTransitionTime: metav1.NewTime(began)},
	}
	w.Status.UnhealthyNodes, w.Status.ClusterName = []kueue.UnhealthyNode{{Name: "n"}}, ptr.To("another")
	workload.Evict(w, workload.Eviction{Reason: kueue.WorkloadEvictedByAdmissionCheck, Message: "because"}, now)
	expect(t, "checks", w.Status.AdmissionChecks, []kueue.AdmissionCheckState{
		{Name: "ready", State: kueue.CheckStatePending, LastTransitionTime: metav1.NewTime(now),
			Message: "Reset to Pending after eviction. Previously: nodes are there"},
		{Name: "retry", State: kueue.CheckStatePending, LastTransitionTime: metav1.NewTime(now), RetryCount: ptr.To[int32](2),
			Message: "Reset to Pending after eviction. Previously: no nodes"},
		{Name: "pending", State: kueue.CheckStatePending, LastTransitionTime: metav1.NewTime(began), Message: "looking"},
	})
	if w.Status.UnhealthyNodes != nil || w.Status.ClusterName != nil {
		t.Error("unhealthy nodes, or the cluster, of the ended admission are left")
	}
}

func TestEvictionsAreCountedByReasonAndCause(t *testing.T) {
	w := admitted()
	evict := func(reason, cause string) {
		workload.Evict(w, workload.Eviction{Reason: reason, Cause: cause}, now)
		workload.GiveBack(w, now)
		workload.SetCondition(w, kueue.WorkloadEvicted, metav1.ConditionFalse, kueue.WorkloadQuotaReservedReason, "", now)
	}
	evict(kueue.WorkloadEvictedByPreemption, kueue.InClusterQueueReason)
	evict(kueue.WorkloadEvictedByPreemption, kueue.InCohortReclamationReason)
	evict(kueue.WorkloadEvictedByPreemption, kueue.InClusterQueueReason)
	evict(kueue.WorkloadEvictedDueToNodeFailures, "")
	evict(kueue.WorkloadEvictedByLocalQueueStopped, "")
	expect(t, "evictions", w.Status.SchedulingStats.Evictions, []kueue.WorkloadSchedulingStatsEviction{
		{Reason: "Preempted", UnderlyingCause: "InClusterQueue", Count: 2},
		{Reason: "Preempted", UnderlyingCause: "InCohortReclamation", Count: 1},
		{Reason: "NodeFailures", Count: 1},
		{Reason: "LocalQueueStopped", Count: 1},
	})
}

func TestAnEvictionBeforeTheQuotaIsReleasedChangesNothing(t *testing.T) {
	w := admitted()
	workload.Evict(w, workload.Eviction{Reason: kueue.WorkloadEvictedByPreemption, Message: "first"}, now)
	before := w.DeepCopy()
	workload.Evict(w, workload.Eviction{Reason: kueue.WorkloadDeactivated, Message: "second"}, now.Add(time.Minute))
	expect(t, "workload", w, before)
}

func TestAnEvictionAfterTheQuotaIsReleasedReplacesThePastOne(t *testing.T) {
	w := admitted()
	workload.Evict(w, workload.Eviction{Reason: kueue.WorkloadEvictedByPreemption}, now)
	workload.GiveBack(w, now)
	later := now.Add(time.Minute)
	workload.Evict(w, workload.Eviction{Reason: kueue.WorkloadDeactivated}, later)
	evicted := meta.FindStatusCondition(w.Status.Conditions, kueue.WorkloadEvicted)
	if evicted.Reason != kueue.WorkloadDeactivated || !evicted.LastTransitionTime.Time.Equal(later) {
		t.Errorf("condition = %+v, want the later deactivation", evicted)
	}
}

func TestReleasedQuotaEndsTheAdmission(t *testing.T) {
	w := admitted()
	w.Status.AccumulatedPastExexcutionTimeSeconds = ptr.To[int32](10)
	workload.Evict(w, workload.Eviction{Reason: kueue.WorkloadEvictedByPreemption, Message: "because"}, now)
	workload.GiveBack(w, now)
	expect(t, "admission", w.Status.Admission, (*kueue.Admission)(nil))
	expect(t, "seconds of admissions that ended", *w.Status.AccumulatedPastExexcutionTimeSeconds, int32(100))
	expect(t, "conditions", conditions(w), []string{
		"Admitted=False NoReservation: The workload has no reservation",
		"Evicted=True Preempted: because",
		"QuotaReserved=False PendingEvaluation: because",
		"Requeued=True Preempted: because",
	})
	before := w.DeepCopy()
	workload.GiveBack(w, now.Add(time.Hour))
	expect(t, "what a second time changes", w, before)
}

func TestGiveBackNeedsAnEviction(t *testing.T) {
	w := admitted()
	workload.GiveBack(w, now)
	expect(t, "workload", w, admitted())
}

func TestWhichEvictionsRequeueAtOnce(t *testing.T) {
	drained := map[string]bool{kueue.WorkloadEvictedByClusterQueueStopped: true,
		kueue.WorkloadEvictedByLocalQueueStopped: true}
	for reason, want := range map[string]bool{
		kueue.WorkloadEvictedByPreemption:                                           true,
		kueue.WorkloadEvictedDueToNodeFailures:                                      true,
		kueue.WorkloadEvictedDueToFlavorMigration:                                   true,
		"AReasonOfAnotherController":                                                true,
		kueue.WorkloadEvictedByPodsReadyTimeout:                                     false,
		kueue.WorkloadEvictedByAdmissionCheck:                                       false,
		kueue.WorkloadEvictedByClusterQueueStopped:                                  false,
		kueue.WorkloadEvictedByLocalQueueStopped:                                    false,
		kueue.WorkloadEvictedOnManagerCluster:                                       false,
		kueue.WorkloadDeactivated:                                                   false,
		kueue.WorkloadDeactivatedDueTo + kueue.WorkloadRequeuingLimitExceeded:       false,
		kueue.WorkloadDeactivatedDueTo + kueue.WorkloadMaximumExecutionTimeExceeded: false,
	} {
		w := admitted()
		workload.Evict(w, workload.Eviction{Reason: reason}, now)
		workload.GiveBack(w, now)
		if got := workload.IsTrue(w, kueue.WorkloadRequeued); got != want {
			t.Errorf("after %s: Requeued = %t, want %t", reason, got, want)
		}
		workload.ResumeQueueing(w, now)
		if got := workload.IsTrue(w, kueue.WorkloadRequeued); got != (want || drained[reason]) {
			t.Errorf("after %s, once the queue is open: Requeued = %t", reason, got)
		}
	}
}

// TestADrainedWorkloadHasTheMessageOfItsStoppedQueue: it is the message that the engine would write otherwise.
func TestADrainedWorkloadHasTheMessageOfItsStoppedQueue(t *testing.T) {
	for reason, want := range map[string]string{
		kueue.WorkloadEvictedByClusterQueueStopped: "QuotaReserved=False OnHold: ClusterQueue cq is stopped",
		kueue.WorkloadEvictedByLocalQueueStopped:   "QuotaReserved=False OnHold: LocalQueue q is stopped",
	} {
		w := admitted()
		w.Spec.QueueName, w.Status.Admission.ClusterQueue = "q", "cq"
		workload.Evict(w, workload.Eviction{Reason: reason, Message: "stopped"}, now)
		workload.GiveBack(w, now)
		if got := conditions(w); !slices.Contains(got, want) {
			t.Errorf("after %s: conditions = %q", reason, got)
		}
		w = admitted()
		w.Spec.Active = ptr.To(false)
		workload.Evict(w, workload.Eviction{Reason: reason, Message: "stopped"}, now)
		workload.GiveBack(w, now)
		if got := conditions(w); !slices.Contains(got, "QuotaReserved=False Deactivated: stopped") {
			t.Errorf("after %s and a deactivation: conditions = %q", reason, got)
		}
	}
}

func TestAClockSetBackTakesNoExecutionTimeAway(t *testing.T) {
	w := admitted()
	w.Status.AccumulatedPastExexcutionTimeSeconds = ptr.To[int32](10)
	workload.Release(w, kueue.WorkloadOnHold, "because", began.Add(-time.Hour))
	expect(t, "seconds", *w.Status.AccumulatedPastExexcutionTimeSeconds, int32(10))
}

func TestReactivationResetsTheExecutionTime(t *testing.T) {
	w := admitted()
	w.Spec.Active = ptr.To(false)
	workload.Evict(w, workload.Eviction{Reason: kueue.WorkloadDeactivated,
		Cause: kueue.WorkloadMaximumExecutionTimeExceeded}, now)
	workload.GiveBack(w, now)
	expect(t, "seconds", w.Status.AccumulatedPastExexcutionTimeSeconds, (*int32)(nil))
}

func TestBackoffDoublesUpToItsLimit(t *testing.T) {
	for count, want := range map[int32]time.Duration{
		0: time.Minute, 1: time.Minute, 2: 2 * time.Minute, 3: 4 * time.Minute, 6: 32 * time.Minute,
		7: time.Hour, 8: time.Hour, 2147483647: time.Hour,
	} {
		expect(t, fmt.Sprintf("wait before try %d", count), workload.Backoff(count, time.Minute, time.Hour), want)
	}
	const longest = 1<<63 - 1
	expect(t, "wait without bound", workload.Backoff(100, time.Minute, longest), time.Duration(longest))
	expect(t, "wait of nothing", workload.Backoff(5, 0, time.Hour), time.Duration(0))
}

func TestPostponeOnlyMovesLater(t *testing.T) {
	var w kueue.Workload
	for _, minutes := range []time.Duration{5, 3, 7, 7, 6} {
		workload.Postpone(&w, began.Add(minutes*time.Minute))
	}
	if got := w.Status.RequeueState.RequeueAt; !got.Time.Equal(began.Add(7 * time.Minute)) {
		t.Errorf("requeueAt = %s, want the later time", got)
	}
}

func TestALongMessageIsTruncatedBetweenCharacters(t *testing.T) {
	var w kueue.Workload
	workload.SetCondition(&w, kueue.WorkloadEvicted, metav1.ConditionTrue, "R", "a"+strings.Repeat("ü", 20000), now)
	if got := w.Status.Conditions[0].Message; len(got) != 32768 || !strings.HasSuffix(got, "ü…") {
		t.Errorf("message has %d bytes and ends in %q, want 32768 bytes and a mark of the cut", len(got), got[len(got)-10:])
	}
}

// TestQueuedSince: a Workload waits since its creation, and after an eviction since its condition Requeued changed,
// also if that is False. An admission that resumes a drained Workload is its return to the queue.
func TestQueuedSince(t *testing.T) {
	created := began.Add(-time.Hour)
	evicted, returned := began.Add(time.Minute), began.Add(2*time.Minute)
	requeued := func(status metav1.ConditionStatus, reason string, at time.Time) func(*kueue.Workload) {
		return func(w *kueue.Workload) { workload.SetCondition(w, kueue.WorkloadRequeued, status, reason, "", at) }
	}
	for name, tc := range map[string]struct {
		changes []func(*kueue.Workload)
		want    time.Time
	}{
		"never requeued": {nil, created},
		"preempted": {[]func(*kueue.Workload){requeued(metav1.ConditionTrue, kueue.WorkloadEvictedByPreemption,
			evicted)}, evicted},
		"in backoff": {[]func(*kueue.Workload){requeued(metav1.ConditionFalse, kueue.WorkloadEvictedByPodsReadyTimeout,
			evicted)}, evicted},
		"after backoff": {[]func(*kueue.Workload){
			requeued(metav1.ConditionFalse, kueue.WorkloadEvictedByPodsReadyTimeout, evicted),
			requeued(metav1.ConditionTrue, kueue.WorkloadBackoffFinished, returned)}, returned},
		"drained and admitted": {[]func(*kueue.Workload){
			requeued(metav1.ConditionFalse, kueue.WorkloadEvictedByClusterQueueStopped, evicted),
			func(w *kueue.Workload) { workload.ResumeQueueing(w, returned) }}, returned},
	} {
		t.Run(name, func(t *testing.T) {
			w := admitted()
			w.CreationTimestamp = metav1.NewTime(created)
			for _, change := range tc.changes {
				change(w)
			}
			if got := workload.QueuedSince(w); !got.Equal(tc.want) {
				t.Errorf("queued since %s, want %s", got.Sub(created), tc.want.Sub(created))
			}
		})
	}
}

// TestResetsOfACheckDoNotNest: its controller may change the state again and leave the message.
func TestResetsOfACheckDoNotNest(t *testing.T) {
	w := &kueue.Workload{Status: kueue.WorkloadStatus{AdmissionChecks: []kueue.AdmissionCheckState{{Name: "c",
		State: kueue.CheckStateRetry, Message: "no room"}}}}
	for range 3 {
		workload.ResetChecks(w, time.Time{})
		if got, want := w.Status.AdmissionChecks[0].Message,
			"Reset to Pending after eviction. Previously: no room"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		w.Status.AdmissionChecks[0].State = kueue.CheckStateRetry
	}
}

// TestAWorkloadThatOnlyPointsAtAJobIsNotTheJobs: nobody would report that its pods are gone, and it would keep its
// quota.
func TestAWorkloadThatOnlyPointsAtAJobIsNotTheJobs(t *testing.T) {
	owner := func(version, kind string, controller bool) []metav1.OwnerReference {
		return []metav1.OwnerReference{{APIVersion: version, Kind: kind, Name: "a", UID: "a", Controller: ptr.To(controller)}}
	}
	for name, tc := range map[string]struct {
		owners []metav1.OwnerReference
		label  string
		want   bool
	}{
		"the Workload of a Job":       {owner("batch/v1", "Job", true), "", true},
		"one that points at a Job":    {owner("batch/v1", "Job", false), "", false},
		"one that points at a VCJob":  {owner("batch.volcano.sh/v1alpha1", "Job", false), "", false},
		"one that points at a JobSet": {owner("jobset.x-k8s.io/v1alpha2", "JobSet", false), "", false},
		"the Workload of a pod group": {owner("v1", "Pod", false), "", true},
		"one of a custom integration": {owner("example.com/v1", "Job", true), "", true},
		"one without owner":           {nil, "", false},
		"one whose job was orphaned":  {nil, "a", true},
	} {
		w := &kueue.Workload{ObjectMeta: metav1.ObjectMeta{OwnerReferences: tc.owners}}
		if tc.label != "" {
			w.Labels = map[string]string{kueue.JobUIDLabel: tc.label}
		}
		if got := workload.IsOwned(w); got != tc.want {
			t.Errorf("%s: owned: %t, want %t", name, got, tc.want)
		}
	}
}
