package report

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/admission/admissiontest"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/metrics/metricstest"
	"github.com/musterhq/muster/internal/workload"
)

// gained returns by how much each metric has changed since before.
func gained(t *testing.T, before map[string]float64) map[string]float64 {
	t.Helper()
	out := map[string]float64{}
	for name, is := range metricstest.Values(t) {
		if is != before[name] && strings.HasPrefix(name, "kueue_") {
			out[name] = math.Round(1000*(is-before[name])) / 1000 // removes the rounding errors of earlier additions
		}
	}
	return out
}

// TestWorkloadMetrics: a Workload waits 10 s for quota and 5 s for a check, is ready after 20 s, recovers, is evicted
// twice for the same reason, and is requeued.
func TestWorkloadMetrics(t *testing.T) {
	at := func(seconds int) time.Time { return admissiontest.Now.Add(time.Duration(seconds) * time.Second) }
	given := &engine.Admission{ClusterQueue: "counted", Checks: []string{"check"}}
	w := admissiontest.NewWorkload("w", 1, nil)
	w.Spec.QueueName = "counted"
	before := metricstest.Values(t)
	step := func(change func(w *kueue.Workload)) {
		was := w.DeepCopy()
		change(w)
		CountChange(was, w)
		CountChange(w, w) // an update without changes counts nothing
	}
	set := func(kind, reason string, status metav1.ConditionStatus, when int) func(*kueue.Workload) {
		return func(w *kueue.Workload) { workload.SetCondition(w, kind, status, reason, "", at(when)) }
	}
	evict := func(when int) func(*kueue.Workload) {
		return func(w *kueue.Workload) {
			workload.Evict(w, workload.Eviction{Reason: kueue.WorkloadEvictedByPreemption,
				Cause: kueue.InClusterQueueReason}, at(when))
		}
	}
	step(func(w *kueue.Workload) { admissiontest.Admit(w, given, at(10)) })
	step(set(kueue.WorkloadAdmitted, "Admitted", metav1.ConditionTrue, 15))
	step(set(kueue.WorkloadPodsReady, kueue.WorkloadStarted, metav1.ConditionTrue, 35))
	step(set(kueue.WorkloadPodsReady, kueue.WorkloadWaitForRecovery, metav1.ConditionFalse, 40))
	step(set(kueue.WorkloadPodsReady, kueue.WorkloadRecovered, metav1.ConditionTrue, 50))
	step(evict(60)) // it has no owner, so it is requeued at once
	step(func(w *kueue.Workload) { admissiontest.Admit(w, &engine.Admission{ClusterQueue: "counted"}, at(67)) })
	step(evict(70))
	want := map[string]float64{
		"kueue_quota_reserved_workloads_total{cluster_queue=counted}":                                               2,
		"kueue_quota_reserved_wait_time_seconds_count{cluster_queue=counted}":                                       2,
		"kueue_quota_reserved_wait_time_seconds_sum{cluster_queue=counted}":                                         10 + 7,
		"kueue_admitted_workloads_total{cluster_queue=counted}":                                                     2,
		"kueue_admission_wait_time_seconds_count{cluster_queue=counted}":                                            2,
		"kueue_admission_wait_time_seconds_sum{cluster_queue=counted}":                                              15 + 7,
		"kueue_admission_checks_wait_time_seconds_count{cluster_queue=counted}":                                     1,
		"kueue_admission_checks_wait_time_seconds_sum{cluster_queue=counted}":                                       5,
		"kueue_ready_wait_time_seconds_count{cluster_queue=counted}":                                                1,
		"kueue_ready_wait_time_seconds_sum{cluster_queue=counted}":                                                  35,
		"kueue_admitted_until_ready_wait_time_seconds_count{cluster_queue=counted}":                                 1,
		"kueue_admitted_until_ready_wait_time_seconds_sum{cluster_queue=counted}":                                   20,
		"kueue_evicted_workloads_total{cluster_queue=counted,reason=Preempted}":                                     2,
		"kueue_evicted_workloads_once_total{cluster_queue=counted,detailed_reason=InClusterQueue,reason=Preempted}": 1,
		"kueue_local_queue_quota_reserved_workloads_total{name=counted,namespace=ns}":                               2,
		"kueue_local_queue_admitted_workloads_total{name=counted,namespace=ns}":                                     2,
		"kueue_local_queue_evicted_workloads_total{name=counted,namespace=ns,reason=Preempted}":                     2,
	}
	if diff := cmp.Diff(want, gained(t, before)); diff != "" {
		t.Errorf("metrics (-want +got):\n%s", diff)
	}
	forgetCounted(StatusOf{OfClusterQueue, engine.Key{Name: "counted"}})
	forgetCounted(StatusOf{OfLocalQueue, engine.Key{Namespace: "ns", Name: "counted"}})
	for name := range want {
		if _, left := metricstest.Values(t)[name]; left {
			t.Errorf("metric %s is left of deleted queues", name)
		}
	}
}

// TestWaitOfADrainedWorkload: the time for which its queue was stopped does not count as its wait, if the write that
// admits it is also the one that requeues it.
func TestWaitOfADrainedWorkload(t *testing.T) {
	at := func(seconds int) time.Time { return admissiontest.Now.Add(time.Duration(seconds) * time.Second) }
	w := admissiontest.NewWorkload("w", 1, nil)
	workload.SetCondition(w, kueue.WorkloadRequeued, metav1.ConditionFalse,
		kueue.WorkloadEvictedByClusterQueueStopped, "", at(10))
	before, was := metricstest.Values(t), w.DeepCopy()
	admissiontest.Admit(w, &engine.Admission{ClusterQueue: "restarted"}, at(5000))
	CountChange(was, w)
	got := gained(t, before)
	for _, metric := range []string{"kueue_quota_reserved_wait_time_seconds", "kueue_admission_wait_time_seconds"} {
		const queue = "{cluster_queue=restarted}"
		if got[metric+"_count"+queue] != 1 || got[metric+"_sum"+queue] != 0 {
			t.Errorf("%s counts %v waits of %v s in total, want one of 0 s", metric, got[metric+"_count"+queue],
				got[metric+"_sum"+queue])
		}
	}
	forgetCounted(StatusOf{OfClusterQueue, engine.Key{Name: "restarted"}})
}

func TestAttemptsAreCounted(t *testing.T) {
	before := metricstest.Values(t)
	CountAttempt(nil, time.Second)
	CountAttempt([]engine.Decision{{}}, 2*time.Second)
	CountAttempt([]engine.Decision{{}, {Admit: &engine.Admission{}}}, 3*time.Second)
	want := map[string]float64{
		"kueue_admission_attempts_total{result=inadmissible}":                 1,
		"kueue_admission_attempts_total{result=success}":                      1,
		"kueue_admission_attempt_duration_seconds_count{result=inadmissible}": 1,
		"kueue_admission_attempt_duration_seconds_sum{result=inadmissible}":   2,
		"kueue_admission_attempt_duration_seconds_count{result=success}":      1,
		"kueue_admission_attempt_duration_seconds_sum{result=success}":        3,
	}
	if diff := cmp.Diff(want, gained(t, before)); diff != "" {
		t.Errorf("metrics (-want +got):\n%s", diff)
	}
}
