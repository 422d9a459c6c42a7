package workload

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/api/muster"
)

// Messages of conditions and checks.
const (
	noReservationMessage = "The workload has no reservation"
	checkResetMessage    = "Reset to Pending after eviction. Previously: "
)

// evictionsMax is the API's limit for the number of eviction counters.
const evictionsMax = 256

// ForGood stands in the message of the Evicted condition between why the Workload is evicted and why it does not return
// to its queue, if it was deactivated since.
const ForGood = "; it does not return to its queue: "

// Eviction says why a Workload is evicted.
type Eviction struct {
	// Reason is that of the Evicted condition, one of the API's.
	Reason string
	// Cause details the reason, "" for none: what deactivated the Workload, what the preemption was for, what the
	// timeout waited for. Evictions are counted by reason and cause, and a deactivation appends the cause to the
	// condition's reason.
	Cause string
	// Message is that of the Evicted condition.
	Message string
}

// Evict marks the Workload evicted. It keeps its quota until GiveBack, since its pods still run. Until then further
// evictions change and count nothing; after it, a new eviction replaces a past one. A Workload without quota is
// evicted from its queue. A Workload without owners, and that was not made for a job, gives its quota back in the same
// write: nothing could report later that its pods are gone.
func Evict(w *kueue.Workload, e Eviction, now time.Time) {
	if IsEvicted(w) && HoldsQuota(w) {
		return
	}
	meta.RemoveStatusCondition(&w.Status.Conditions, kueue.WorkloadEvicted) // the new one gets its own transition time
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

// IsOwned reports whether it is reported when the pods of the Workload are gone: by the controller of an owner, or, if
// the job of the Workload was deleted without its pods, by package jobs/controller. The owner need not be a controller
// reference: the pods of a group own their Workload together. But a Workload that only points at a job that Muster runs
// is not the job's, and nobody reports on it.
func IsOwned(w *kueue.Workload) bool {
	return IsOrphaned(w) || slices.ContainsFunc(w.OwnerReferences, func(o metav1.OwnerReference) bool {
		group, _, _ := strings.Cut(o.APIVersion, "/")
		return ptr.Deref(o.Controller, false) || !slices.Contains(jobGroups, group)
	})
}

// jobGroups are the API groups of jobs that Muster runs, each of which controls its Workload.
var jobGroups = []string{"batch", "jobset.x-k8s.io", "batch.tensorstack.dev", "lattice.dev",
	"batch.volcano.sh", "breezeml.ai"}

// IsOrphaned reports whether the Workload was made for a job and has no owner any more, for instance since the job was
// deleted with the propagation policy Orphan. Pods of the job may run on.
func IsOrphaned(w *kueue.Workload) bool {
	return len(w.OwnerReferences) == 0 && w.Labels[kueue.JobUIDLabel] != ""
}

// OrphanedMessage is the message of the condition Finished of an orphaned Workload.
const OrphanedMessage = "The job that the workload was created for no longer exists"

// ReportsReadiness reports whether the Workload's PodsReady condition can be expected: it has an owner, or has the
// condition already. A Workload for which it cannot be expected does not time out, and others do not wait for it.
func ReportsReadiness(w *kueue.Workload) bool {
	return IsOwned(w) || meta.FindStatusCondition(w.Status.Conditions, kueue.WorkloadPodsReady) != nil
}

// ResetChecks sets every check back to Pending, to be evaluated again for the next admission.
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
		message := check.Message
		for strings.HasPrefix(message, checkResetMessage) { // its controller changed the state and left the message
			message = strings.TrimPrefix(message, checkResetMessage)
		}
		*check = kueue.AdmissionCheckState{
			Name: check.Name, State: kueue.CheckStatePending, LastTransitionTime: metav1.NewTime(now),
			Message: Cut(checkResetMessage+message, ConditionMessageBytes), RetryCount: retries,
		}
	}
}

// countEviction increments the counter for the eviction's reason and cause.
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

// GiveBack releases the quota of an evicted Workload whose pods are gone, or that never had any, and sets whether it
// is requeued at once. It does nothing to a Workload that is not evicted.
func GiveBack(w *kueue.Workload, now time.Time) {
	evicted := IfTrue(w, kueue.WorkloadEvicted)
	if evicted == nil {
		return
	}
	reason, message := evicted.Reason, evicted.Message // SetCondition may move the condition that evicted points to
	requeued := metav1.ConditionTrue
	if staysOutAfter(reason) {
		requeued = metav1.ConditionFalse
	}
	SetCondition(w, kueue.WorkloadRequeued, requeued, reason, message, now)
	why, text := waitReasonAfter(w, reason, message)
	Release(w, why, text, now)
	if reason == kueue.WorkloadDeactivatedDueTo+kueue.WorkloadMaximumExecutionTimeExceeded {
		w.Status.AccumulatedPastExexcutionTimeSeconds = nil // a reactivated Workload gets its full execution time again
	}
}

// waitReasonAfter returns why an evicted Workload waits now, as far as that is known without its queue. For a drained
// queue it uses the message of the engine, which then need not write it again.
func waitReasonAfter(w *kueue.Workload, reason, message string) (why, text string) {
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

// StoppedMessage is the message of a Workload that waits because its queue, of the given kind, is stopped. The
// engine, which does not import this package, has the same message; a test in internal/admission compares them.
func StoppedMessage(kind, name string) string { return fmt.Sprintf("%s %s is stopped", kind, name) }

// Release removes the quota of a Workload without pods. reason and message are for its QuotaReserved condition.
// Unlike GiveBack it does not touch the Requeued condition.
func Release(w *kueue.Workload, reason, message string, now time.Time) {
	accumulate(w, now)
	w.Status.Admission, w.Status.ResourceRequests = nil, nil
	SetCondition(w, kueue.WorkloadQuotaReserved, metav1.ConditionFalse, reason, message, now)
	SetCondition(w, kueue.WorkloadAdmitted, metav1.ConditionFalse, kueue.WorkloadNoReservation, noReservationMessage, now)
	meta.RemoveStatusCondition(&w.Status.Conditions, kueue.WorkloadPodsReady)
	meta.RemoveStatusCondition(&w.Status.Conditions, muster.TimeLimitNearCondition)
}

// staysOutAfter reports whether an eviction with the reason keeps the Workload out of its queue until something
// happens: a reactivation, the end of a backoff, the restart of a queue, or a decision of another cluster.
func staysOutAfter(reason string) bool {
	switch reason {
	case kueue.WorkloadEvictedByPodsReadyTimeout, kueue.WorkloadEvictedByAdmissionCheck,
		kueue.WorkloadEvictedOnManagerCluster, kueue.WorkloadEvictedByClusterQueueStopped,
		kueue.WorkloadEvictedByLocalQueueStopped:
		return true
	}
	return IsDeactivation(reason)
}

// restarts has the reason of Requeued after a queue was restarted, by the reason that kept the Workload out of the
// queue. Inadmissible is never written here, but a Workload that was migrated from Kueue may have it.
var restarts = map[string]struct{ reason, queue string }{
	kueue.WorkloadEvictedByClusterQueueStopped: {kueue.WorkloadClusterQueueRestarted, "ClusterQueue"},
	kueue.WorkloadEvictedByLocalQueueStopped:   {kueue.WorkloadLocalQueueRestarted, "LocalQueue"},
	kueue.WorkloadInadmissible:                 {kueue.WorkloadClusterQueueRestarted, "ClusterQueue"},
}

// IsDrained reports whether the Workload was evicted from a drained queue that was not reported restarted since.
func IsDrained(w *kueue.Workload) bool {
	c := IfFalse(w, kueue.WorkloadRequeued)
	return c != nil &&
		(c.Reason == kueue.WorkloadEvictedByClusterQueueStopped || c.Reason == kueue.WorkloadEvictedByLocalQueueStopped)
}

// ResumeQueueing requeues a Workload that was kept out of its queue because that was stopped. It does nothing to
// others.
func ResumeQueueing(w *kueue.Workload, now time.Time) {
	c := IfFalse(w, kueue.WorkloadRequeued)
	if c == nil {
		return
	}
	if goesOn, ok := restarts[c.Reason]; ok {
		SetCondition(w, kueue.WorkloadRequeued, metav1.ConditionTrue, goesOn.reason,
			"The "+goesOn.queue+" was restarted after being stopped", now)
	}
}

// IsDeactivation reports whether the reason, of Evicted or Requeued, is a deactivation.
func IsDeactivation(reason string) bool { return strings.HasPrefix(reason, kueue.WorkloadDeactivated) }

// accumulate adds the duration of the admission that ends to the accumulated execution time.
func accumulate(w *kueue.Workload, now time.Time) {
	since := TrueSince(w, kueue.WorkloadAdmitted)
	if since.IsZero() {
		return
	}
	ran := max(now.Sub(since), 0) // the clock may have been set back
	past := int64(ptr.Deref(w.Status.AccumulatedPastExexcutionTimeSeconds, 0))
	w.Status.AccumulatedPastExexcutionTimeSeconds = ptr.To(saturate(past + int64(ran/time.Second)))
}

func saturate(n int64) int32 { return int32(min(n, math.MaxInt32)) }
