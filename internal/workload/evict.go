package workload

import (
	"fmt"
	"math"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
)

// Messages of what is written here.
const (
	noReservationMessage = "The workload has no reservation"
	checkResetMessage    = "Reset to Pending after eviction. Previously: "
)

// evictionsMax is the API's limit of kinds of evictions that are counted apart.
const evictionsMax = 256

// Eviction says why an admission is taken back.
type Eviction struct {
	// Reason of the condition Evicted, one of the API's.
	Reason string
	// Cause says more than the reason, "" for nothing: who deactivated, what the preemption was for, what the timeout
	// waited for. It is counted with the reason, and ends the condition's reason where that is a deactivation.
	Cause string
	// Message of the condition.
	Message string
}

// Evict begins to take the Workload's admission back. The quota stays with it until GiveBack: its pods still run. Until
// then it stays evicted for the first reason, and is not counted again; later on, a new eviction takes the place of a past
// one. A Workload without quota is evicted from its queue. One that nobody owns gives its quota back with the same write:
// nobody could say later that its pods are gone.
func Evict(w *kueue.Workload, e Eviction, now time.Time) {
	if IsEvicted(w) && HoldsQuota(w) {
		return
	}
	meta.RemoveStatusCondition(&w.Status.Conditions, kueue.WorkloadEvicted) // the new one has a time of its own
	reason := e.Reason
	if reason == kueue.WorkloadDeactivated && e.Cause != "" {
		reason = kueue.WorkloadDeactivatedDueTo + e.Cause
	}
	SetCondition(w, kueue.WorkloadEvicted, metav1.ConditionTrue, reason, e.Message, now)
	ResetChecks(w, now)
	countEviction(w, e)
	w.Status.UnhealthyNodes = nil
	w.Status.ClusterName, w.Status.NominatedClusterNames = nil, nil
	if HoldsQuota(w) && !IsOwned(w) {
		GiveBack(w, now)
	}
}

// IsOwned reports whether somebody owns the Workload, who says when its pods are gone. Any owner counts, a controller or
// not: a group of pods owns its Workload together.
func IsOwned(w *kueue.Workload) bool { return len(w.OwnerReferences) > 0 }

// TellsReadiness reports whether anybody tells, or should, when the pods of the Workload are
// ready. Nobody does of one that nobody owns, unless its controller has: such a one is neither
// late nor do others wait for it.
func TellsReadiness(w *kueue.Workload) bool {
	return IsOwned(w) || meta.FindStatusCondition(w.Status.Conditions, kueue.WorkloadPodsReady) != nil
}

// ResetChecks has every check decide anew at the next admission.
func ResetChecks(w *kueue.Workload, now time.Time) {
	for i := range w.Status.AdmissionChecks {
		check := &w.Status.AdmissionChecks[i]
		if check.State == kueue.CheckStatePending {
			continue
		}
		retries := check.RetryCount
		if check.State == kueue.CheckStateRetry {
			retries = ptr.To(saturate(int64(ptr.Deref(retries, 0)) + 1))
		}
		*check = kueue.AdmissionCheckState{
			Name: check.Name, State: kueue.CheckStatePending, LastTransitionTime: metav1.NewTime(now),
			Message: cut(checkResetMessage + check.Message), RetryCount: retries,
		}
	}
}

// countEviction counts the eviction with those of its reason and cause.
func countEviction(w *kueue.Workload, e Eviction) {
	if w.Status.SchedulingStats == nil {
		w.Status.SchedulingStats = &kueue.SchedulingStats{}
	}
	stats := w.Status.SchedulingStats
	for i := range stats.Evictions {
		if counted := &stats.Evictions[i]; counted.Reason == e.Reason && counted.UnderlyingCause == e.Cause {
			counted.Count = saturate(int64(counted.Count) + 1)
			return
		}
	}
	if len(stats.Evictions) < evictionsMax {
		stats.Evictions = append(stats.Evictions, kueue.WorkloadSchedulingStatsEviction{
			Reason: e.Reason, UnderlyingCause: e.Cause, Count: 1})
	}
}

// GiveBack returns the quota of an evicted Workload whose pods are gone, or that never had any, and says whether it goes
// back to its queue at once. It does nothing to a Workload that is not evicted.
func GiveBack(w *kueue.Workload, now time.Time) {
	evicted := meta.FindStatusCondition(w.Status.Conditions, kueue.WorkloadEvicted)
	if evicted == nil || evicted.Status != metav1.ConditionTrue {
		return
	}
	reason, message := evicted.Reason, evicted.Message // what follows may move the conditions
	again := metav1.ConditionTrue
	if waitsAfter(reason) {
		again = metav1.ConditionFalse
	}
	SetCondition(w, kueue.WorkloadRequeued, again, reason, message, now)
	why, said := waitsFor(w, reason, message)
	Release(w, why, said, now)
	if reason == kueue.WorkloadDeactivatedDueTo+kueue.WorkloadMaximumExecutionTimeExceeded {
		w.Status.AccumulatedPastExexcutionTimeSeconds = nil // who activates it again gives it the whole time again
	}
}

// waitsFor is why a Workload that was evicted with the reason and the message waits now, as far as it can be told without its queue. Of a
// queue that was drained it is in the words of the engine, which will say the same: each that is evicted so costs a write less.
func waitsFor(w *kueue.Workload, reason, message string) (why, said string) {
	switch {
	case !IsActive(w):
		return kueue.WorkloadDeactivated, message
	case reason == kueue.WorkloadEvictedByLocalQueueStopped:
		return kueue.WorkloadOnHold, StoppedMessage("LocalQueue", string(w.Spec.QueueName))
	case reason == kueue.WorkloadEvictedByClusterQueueStopped && HoldsQuota(w):
		return kueue.WorkloadOnHold, StoppedMessage("ClusterQueue", string(w.Status.Admission.ClusterQueue))
	}
	return kueue.WorkloadPendingEvaluation, message
}

// StoppedMessage says of a Workload that it waits because its queue, of that kind, is stopped. The engine, which imports nothing of this,
// says the same: internal/admission has a test of that.
func StoppedMessage(kind, name string) string { return fmt.Sprintf("%s %s is stopped", kind, name) }

// Release takes the quota from a Workload without pods. Reason and message are those of QuotaReserved. Unlike GiveBack it
// does not say whether the Workload goes back to its queue.
func Release(w *kueue.Workload, reason, message string, now time.Time) {
	accumulate(w, now)
	w.Status.Admission, w.Status.ResourceRequests = nil, nil
	SetCondition(w, kueue.WorkloadQuotaReserved, metav1.ConditionFalse, reason, message, now)
	SetCondition(w, kueue.WorkloadAdmitted, metav1.ConditionFalse, kueue.WorkloadNoReservation, noReservationMessage, now)
	meta.RemoveStatusCondition(&w.Status.Conditions, kueue.WorkloadPodsReady)
}

// waitsAfter reports whether something must happen before a Workload that was evicted so may be admitted again: somebody
// activates it, a back-off ends, a queue goes on, or another cluster says so.
func waitsAfter(reason string) bool {
	switch reason {
	case kueue.WorkloadEvictedByPodsReadyTimeout, kueue.WorkloadEvictedByAdmissionCheck, kueue.WorkloadEvictedOnManagerCluster,
		kueue.WorkloadEvictedByClusterQueueStopped, kueue.WorkloadEvictedByLocalQueueStopped:
		return true
	}
	return IsDeactivation(reason)
}

// restarts are what Requeued says once a queue goes on, by the reason for which the Workload was kept out of it. With
// Inadmissible, which nobody here writes, a Workload may come from elsewhere.
var restarts = map[string]struct{ reason, queue string }{
	kueue.WorkloadEvictedByClusterQueueStopped: {kueue.WorkloadClusterQueueRestarted, "ClusterQueue"},
	kueue.WorkloadEvictedByLocalQueueStopped:   {kueue.WorkloadLocalQueueRestarted, "LocalQueue"},
	kueue.WorkloadInadmissible:                 {kueue.WorkloadClusterQueueRestarted, "ClusterQueue"},
}

// IsDrained reports whether the Workload was evicted because its queue was drained, and nobody has said yet that the queue
// goes on.
func IsDrained(w *kueue.Workload) bool {
	c := meta.FindStatusCondition(w.Status.Conditions, kueue.WorkloadRequeued)
	return c != nil && c.Status == metav1.ConditionFalse &&
		(c.Reason == kueue.WorkloadEvictedByClusterQueueStopped || c.Reason == kueue.WorkloadEvictedByLocalQueueStopped)
}

// Restart says of a Workload that was kept out of its queue because that was stopped that the queue goes on. It does nothing
// to others.
func Restart(w *kueue.Workload, now time.Time) {
	c := meta.FindStatusCondition(w.Status.Conditions, kueue.WorkloadRequeued)
	if c == nil || c.Status != metav1.ConditionFalse {
		return
	}
	if goesOn, ok := restarts[c.Reason]; ok {
		SetCondition(w, kueue.WorkloadRequeued, metav1.ConditionTrue, goesOn.reason,
			"The "+goesOn.queue+" was restarted after being stopped", now)
	}
}

// IsDeactivation reports whether the reason, of Evicted or Requeued, is that somebody deactivated the Workload.
func IsDeactivation(reason string) bool { return strings.HasPrefix(reason, kueue.WorkloadDeactivated) }

// accumulate adds the time of an admission that ends to that of those before it.
func accumulate(w *kueue.Workload, now time.Time) {
	admitted := meta.FindStatusCondition(w.Status.Conditions, kueue.WorkloadAdmitted)
	if admitted == nil || admitted.Status != metav1.ConditionTrue {
		return
	}
	// A clock that was set back must not take time away.
	ran := max(now.Sub(admitted.LastTransitionTime.Time), 0)
	past := int64(ptr.Deref(w.Status.AccumulatedPastExexcutionTimeSeconds, 0))
	w.Status.AccumulatedPastExexcutionTimeSeconds = ptr.To(saturate(past + int64(ran/time.Second)))
}

func saturate(n int64) int32 { return int32(min(n, math.MaxInt32)) }
