package translate

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	v1alpha1 "github.com/musterhq/muster/api/config/v1alpha1"
	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/admission/admissiontest"
	"github.com/musterhq/muster/internal/config"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/podspec"
	"github.com/musterhq/muster/internal/workload"
)

func TestBlockAdmissionIsConfigured(t *testing.T) {
	for said, want := range map[v1alpha1.BlockAdmission]engine.Block{
		v1alpha1.BlockNone: engine.BlockNone, v1alpha1.BlockQueue: engine.BlockQueue, v1alpha1.BlockAll: engine.BlockAll,
	} {
		cfg := config.Default()
		cfg.WaitForPodsReady.BlockAdmission = &said
		if got := EngineOptions(cfg).BlockUntilReady; got != want {
			t.Errorf("BlockUntilReady for %s = %d, want %d", said, got, want)
		}
		cfg.WaitForPodsReady.Enable = ptr.To(false)
		if got := EngineOptions(cfg).BlockUntilReady; got != engine.BlockNone {
			t.Errorf("%s blocks admissions although waiting for ready pods is off", said)
		}
	}
	if got := EngineOptions(config.Default()).BlockUntilReady; got != engine.BlockNone {
		t.Errorf("BlockUntilReady by default = %d, want none", got)
	}
}

// TestQueuePositionAfterAnEviction: the position is by creation time, except after a failed start if so configured, and
// after the retry of a check.
func TestQueuePositionAfterAnEviction(t *testing.T) {
	created, evicted := admissiontest.Now.Add(-time.Hour), admissiontest.Now.Add(-time.Minute)
	for reason, late := range map[string]struct{ byEviction, byCreation bool }{
		kueue.WorkloadEvictedByPodsReadyTimeout:    {byEviction: true},
		kueue.WorkloadEvictedByAdmissionCheck:      {byEviction: true, byCreation: true},
		kueue.WorkloadEvictedByPreemption:          {},
		kueue.WorkloadEvictedByClusterQueueStopped: {},
		kueue.WorkloadEvictedDueToNodeFailures:     {},
		"":                                         {}, // never evicted
	} {
		for timestamp, behind := range map[v1alpha1.RequeuingTimestamp]bool{v1alpha1.EvictionTimestamp: late.byEviction,
			v1alpha1.CreationTimestamp: late.byCreation} {
			cfg := config.Default()
			cfg.WaitForPodsReady.RequeuingStrategy.Timestamp = &timestamp
			w := &kueue.Workload{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a",
				CreationTimestamp: metav1.NewTime(created)}}
			if reason != "" {
				workload.SetCondition(w, kueue.WorkloadEvicted, metav1.ConditionTrue, reason, "", evicted)
			}
			want := created
			if behind {
				want = evicted
			}
			words := New(podspec.Counting{}, QueuePolicyOf(cfg), 5*time.Second)
			if got := words.Workload(w).QueuedAt; !got.Equal(want) {
				t.Errorf("evicted by %q, requeued by %s: queued at %s, want %s", reason, timestamp, got, want)
			}
		}
	}
}

func TestBackoffReason(t *testing.T) {
	at := metav1.NewTime(admissiontest.Now)
	for said, state := range map[string]*kueue.RequeueState{
		"waits until 2026-03-01T12:00:00Z after eviction number 2 for pods that were not ready": {
			Count: ptr.To[int32](2), RequeueAt: &at},
		"waits until 2026-03-01T12:00:00Z, as an admission check asked": {RequeueAt: &at},
		"": {Count: ptr.To[int32](2)},
	} {
		w := &kueue.Workload{}
		w.Status.RequeueState = state
		if got := backoffReason(w); got != said {
			t.Errorf("got %q, want %q", got, said)
		}
	}
}

// TestBackoffForACheckDoesNotMentionEarlierTimeouts: the count of earlier timeouts stays in the status.
func TestBackoffForACheckDoesNotMentionEarlierTimeouts(t *testing.T) {
	w := &kueue.Workload{}
	w.Status.RequeueState = &kueue.RequeueState{Count: ptr.To[int32](2),
		RequeueAt: ptr.To(metav1.NewTime(admissiontest.Now))}
	w.Status.Conditions = []metav1.Condition{{Type: kueue.WorkloadRequeued, Status: metav1.ConditionFalse,
		Reason: kueue.WorkloadEvictedByAdmissionCheck}}
	if got, want := backoffReason(w), "waits until 2026-03-01T12:00:00Z, as an admission check asked"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestADrainedWorkloadIsHeldBackByItsQueueOnly: otherwise later Workloads would be admitted first after the restart of
// the queue, since requeueing takes a write for each Workload.
func TestADrainedWorkloadIsHeldBackByItsQueueOnly(t *testing.T) {
	for reason, want := range map[string]string{
		kueue.WorkloadEvictedByClusterQueueStopped: "",
		kueue.WorkloadEvictedByLocalQueueStopped:   "",
		kueue.WorkloadEvictedByPodsReadyTimeout:    "because",
		kueue.WorkloadDeactivated:                  "because",
	} {
		w := &kueue.Workload{}
		w.Status.Conditions = []metav1.Condition{{Type: kueue.WorkloadRequeued, Status: metav1.ConditionFalse, Reason: reason,
			Message: "because"}}
		if got := backoffReason(w); got != want {
			t.Errorf("evicted by %s: got %q, want %q", reason, got, want)
		}
	}
}
