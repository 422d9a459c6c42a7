package report

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/admission/decisions"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/metrics"
	"github.com/musterhq/muster/internal/workload"
)

// waitBuckets are the buckets of all waiting times: from seconds to hours.
var waitBuckets = append([]float64{1}, prometheus.ExponentialBuckets(2.5, 2, 13)...)

// Metrics of Workloads, under the names that dashboards for Kueue use.
var (
	quotaReservedTotal = metrics.NewCounter("kueue_quota_reserved_workloads_total",
		"Workloads that were given quota.", "cluster_queue")
	quotaReservedWait = metrics.NewHistogram("kueue_quota_reserved_wait_time_seconds",
		"Time from the creation of a Workload, or its return to the queue, until it was given quota.", waitBuckets, "cluster_queue")
	admittedTotal = metrics.NewCounter("kueue_admitted_workloads_total", "Workloads that were admitted.", "cluster_queue")
	admissionWait = metrics.NewHistogram("kueue_admission_wait_time_seconds",
		"Time from the creation of a Workload, or its return to the queue, until it was admitted.", waitBuckets, "cluster_queue")
	checksWait = metrics.NewHistogram("kueue_admission_checks_wait_time_seconds",
		"Time from when a Workload with admission checks was given quota until it was admitted.", waitBuckets, "cluster_queue")
	readyWait = metrics.NewHistogram("kueue_ready_wait_time_seconds",
		"Time from the creation of a Workload, or its return to the queue, until its pods were ready for the first time.", waitBuckets, "cluster_queue")
	admittedReadyWait = metrics.NewHistogram("kueue_admitted_until_ready_wait_time_seconds",
		"Time from the admission of a Workload until its pods were ready for the first time.", waitBuckets, "cluster_queue")
	evictedTotal = metrics.NewCounter("kueue_evicted_workloads_total",
		"Evictions, by the reason of the condition Evicted.", "cluster_queue", "reason")
	evictedOnce = metrics.NewCounter("kueue_evicted_workloads_once_total",
		"Evictions of Workloads that were not evicted before for the same reason and cause.", "cluster_queue", "reason",
		"detailed_reason")

	localQuotaReservedTotal = metrics.NewCounter("kueue_local_queue_quota_reserved_workloads_total",
		"Workloads of the LocalQueue that were given quota.", "name", "namespace")
	localAdmittedTotal = metrics.NewCounter("kueue_local_queue_admitted_workloads_total",
		"Workloads of the LocalQueue that were admitted.", "name", "namespace")
	localEvictedTotal = metrics.NewCounter("kueue_local_queue_evicted_workloads_total",
		"Evictions of Workloads of the LocalQueue.", "name", "namespace", "reason")

	attemptsTotal = metrics.NewCounter("kueue_admission_attempts_total",
		"Passes of the engine that decided anything: `success` where a Workload was given quota, `inadmissible` where none was.", "result")
	attemptSeconds = metrics.NewHistogram("kueue_admission_attempt_duration_seconds",
		"Time of a pass of the engine that decided anything.", nil, "result")
)

// forgetCounted drops the metrics of a deleted queue.
func forgetCounted(key StatusOf) {
	switch key.Kind {
	case OfClusterQueue:
		for _, vec := range []interface{ DeletePartialMatch(prometheus.Labels) int }{quotaReservedTotal, quotaReservedWait,
			admittedTotal, admissionWait, checksWait, readyWait, admittedReadyWait, evictedTotal, evictedOnce} {
			vec.DeletePartialMatch(prometheus.Labels{"cluster_queue": key.Name})
		}
		decisions.PreemptedTotal.DeletePartialMatch(prometheus.Labels{"preempting_cluster_queue": key.Name})
	case OfLocalQueue:
		for _, vec := range []*prometheus.CounterVec{localQuotaReservedTotal, localAdmittedTotal, localEvictedTotal} {
			vec.DeletePartialMatch(prometheus.Labels{"name": key.Name, "namespace": key.Namespace})
		}
	}
}

// CountAttempt counts a pass of the engine by its result.
func CountAttempt(decisions []engine.Decision, took time.Duration) {
	if len(decisions) == 0 {
		return
	}
	result := "inadmissible"
	for _, d := range decisions {
		if d.Admit != nil {
			result = "success"
			break
		}
	}
	attemptsTotal.WithLabelValues(result).Inc()
	attemptSeconds.WithLabelValues(result).Observe(took.Seconds())
}

// CountChange counts what happened to a Workload between two of its states from the watch, whoever wrote it: the
// engine, its lifecycle, its job or another controller. So each change counts once, even if the response to its write
// was lost.
func CountChange(before, after *kueue.Workload) {
	if before.UID != after.UID {
		return
	}
	countEvictions(before, after)
	if after.Status.Admission == nil {
		return
	}
	queue := string(after.Status.Admission.ClusterQueue)
	seconds := func(wait *prometheus.HistogramVec, since, until time.Time) {
		wait.WithLabelValues(queue).Observe(max(0, until.Sub(since).Seconds()))
	}
	queued := workload.QueuedSince(after)
	if at, ok := becameTrue(before, after, kueue.WorkloadQuotaReserved); ok {
		quotaReservedTotal.WithLabelValues(queue).Inc()
		localQuotaReservedTotal.WithLabelValues(string(after.Spec.QueueName), after.Namespace).Inc()
		seconds(quotaReservedWait, queued, at)
	}
	if at, ok := becameTrue(before, after, kueue.WorkloadAdmitted); ok {
		admittedTotal.WithLabelValues(queue).Inc()
		localAdmittedTotal.WithLabelValues(string(after.Spec.QueueName), after.Namespace).Inc()
		seconds(admissionWait, queued, at)
		if len(after.Status.AdmissionChecks) > 0 {
			seconds(checksWait, workload.TrueSince(after, kueue.WorkloadQuotaReserved), at)
		}
	}
	ready := meta.FindStatusCondition(after.Status.Conditions, kueue.WorkloadPodsReady)
	if at, ok := becameTrue(before, after, kueue.WorkloadPodsReady); ok && ready.Reason != kueue.WorkloadRecovered {
		seconds(readyWait, queued, at)
		seconds(admittedReadyWait, workload.TrueSince(after, kueue.WorkloadAdmitted), at)
	}
}

// becameTrue returns when the condition became True between the two states.
func becameTrue(before, after *kueue.Workload, kind string) (at time.Time, ok bool) {
	at = workload.TrueSince(after, kind)
	return at, !at.IsZero() && !at.Equal(workload.TrueSince(before, kind))
}

// countEvictions counts evictions by the Workload's own counters, so that none is missed if the watch skips a state.
func countEvictions(before, after *kueue.Workload) {
	if after.Status.SchedulingStats == nil {
		return
	}
	queue := decisions.FirstQueueOf(before, after) // "" if it was evicted while it waited
	for _, is := range after.Status.SchedulingStats.Evictions {
		var was int32
		if before.Status.SchedulingStats != nil {
			for _, b := range before.Status.SchedulingStats.Evictions {
				if b.Reason == is.Reason && b.UnderlyingCause == is.UnderlyingCause {
					was = b.Count
				}
			}
		}
		if is.Count <= was {
			continue
		}
		evictedTotal.WithLabelValues(queue, is.Reason).Add(float64(is.Count - was))
		localEvictedTotal.WithLabelValues(string(after.Spec.QueueName), after.Namespace,
			is.Reason).Add(float64(is.Count - was))
		if was == 0 {
			evictedOnce.WithLabelValues(queue, is.Reason, string(is.UnderlyingCause)).Inc()
		}
	}
}
