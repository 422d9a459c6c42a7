package decisions

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/api/muster"
	"github.com/musterhq/muster/internal/admission/admissiontest"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/engine/place"
	"github.com/musterhq/muster/internal/workload"
)

// given returns an admission of that many pods of one cpu.
func given(count int32) *engine.Admission {
	return &engine.Admission{ClusterQueue: "cq", PodSets: []engine.Assignment{{PodSet: "main", Count: count,
		Flavors: map[string]string{"cpu": "f"}, Usage: map[string]int64{"cpu": int64(count) * 1000},
		Places: []place.NodeCount{{Node: "n", Count: count}}}}}
}

// runningWriter returns a singleWriter with the decision about ns/a, which requests three pods and runs with two.
func runningWriter(t *testing.T, d engine.Decision) (*admissiontest.World, *singleWriter) {
	t.Helper()
	w := admissiontest.NewWorld(t, admissiontest.NewWorkload("a", 3, asked), admissiontest.NewWorkload("b", 1, asked),
		admissiontest.PlacedFlavor("f", "t"), admissiontest.Topology("t", corev1.LabelHostname),
		admissiontest.NewClusterQueue("cq", "8"), admissiontest.NewLocalQueue("q", "cq"))
	var a kueue.Workload
	a.Name, a.Namespace = "a", "ns"
	w.EditStatus(&a, func() {
		a.Status.Admission = &kueue.Admission{ClusterQueue: "cq",
			PodSetAssignments: []kueue.PodSetAssignment{{Name: "main", Count: ptr.To[int32](2),
				Flavors:       map[corev1.ResourceName]kueue.ResourceFlavorReference{"cpu": "f"},
				ResourceUsage: admissiontest.Quantities("cpu", "2")}}}
		workload.SetCondition(&a, kueue.WorkloadQuotaReserved, metav1.ConditionTrue, kueue.WorkloadQuotaReserved, "",
			admissiontest.Now)
	})
	d.Key, d.UID, d.Serial = engine.Key{Namespace: "ns", Name: "a"}, "a-uid", 7
	return w, newSingleWriterOf(w, d)
}

// TestRefusalsAreReported: after a refusal the engine backs off for that Workload, and meanwhile decides about others.
func TestRefusalsAreReported(t *testing.T) {
	for name, decision := range map[string]engine.Decision{
		"other places": {Replace: given(2)},
		"fewer pods":   {Resize: &engine.Resize{Admission: given(1), PodSet: "main", From: 2, To: 1}},
		"more pods":    {Resize: &engine.Resize{Admission: given(3), PodSet: "main", From: 2, To: 3}},
		"an eviction":  {Evict: &engine.Eviction{Preemptor: engine.Key{Namespace: "ns", Name: "b"}}},
	} {
		t.Run(name, func(t *testing.T) {
			w, d := runningWriter(t, decision)
			refusal := apierrors.NewForbidden(schema.GroupResource{Resource: "workloads"}, "a", errors.New("a policy says no"))
			w.Before = func(string) error { return refusal }
			d.work(t, 2) // the second attempt reports it, after the backoff
			want := []engine.Event{engine.Refused{Key: d.decision.Key, UID: "a-uid", Serial: 7, Message: refusal.Error(),
				At: admissiontest.Now}}
			if diff := cmp.Diff(want, d.reported); diff != "" {
				t.Errorf("reported to the engine (-want +got):\n%s", diff)
			}
		})
	}
}

// TestRefusalReportsBackOff: without a backoff, if the API server refused every write of the operator, all Workloads
// with quota would be tried one after the other.
func TestRefusalReportsBackOff(t *testing.T) {
	w, d := runningWriter(t, engine.Decision{Evict: &engine.Eviction{Preemptor: engine.Key{Namespace: "ns", Name: "b"}}})
	w.Before = func(string) error {
		return apierrors.NewForbidden(schema.GroupResource{Resource: "workloads"}, "a", errors.New("a policy says no"))
	}
	for range 20 {
		d.work(t, 2)
	}
	if next := d.denials.When(struct{}{}); next != LongestRetry {
		t.Errorf("after 20 refusals the next is reported after %v, want %v", next, LongestRetry)
	}
	w.Before = func(string) error { return nil }
	d.work(t, 1)
	if next := d.denials.When(struct{}{}); next >= time.Second {
		t.Errorf("after a successful write the next refusal is reported after %v, want less than a second", next)
	}
}

// TestUnrelatedChangesDoNotOvertakeAResize: an unrelated change between two attempts, the first of which may have taken
// effect, does not supersede a resize; a resize by another client does.
func TestUnrelatedChangesDoNotOvertakeAResize(t *testing.T) {
	grows := engine.Decision{Resize: &engine.Resize{Admission: given(3), PodSet: "main", From: 2, To: 3}}
	for name, tc := range map[string]struct {
		change func(a *kueue.Workload)
		size   int32
	}{
		"pods are ready": {func(a *kueue.Workload) {
			workload.SetCondition(a, kueue.WorkloadPodsReady, metav1.ConditionTrue, kueue.WorkloadStarted, "", admissiontest.Now)
		}, 3},
		"grown, and shrunk again": {func(a *kueue.Workload) {
			workload.SetCondition(a, muster.ResizedCondition, metav1.ConditionTrue, muster.ShrunkReason,
				"pod set main from 3 to 2 pods", admissiontest.Now)
		}, 2},
		"evicted, and admitted again": {func(a *kueue.Workload) {
			workload.SetCondition(a, kueue.WorkloadQuotaReserved, metav1.ConditionTrue, kueue.WorkloadQuotaReserved, "again",
				admissiontest.Now)
		}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			w, d := runningWriter(t, grows)
			w.Before = admissiontest.Once(apierrors.NewTimeoutError("no answer", 1))
			d.Take(d.decision)
			d.Writer.Write(t.Context(), d.decision.Key)
			a := w.Workload("a")
			w.EditStatus(a, func() { tc.change(a) })
			d.Writer.Write(t.Context(), d.decision.Key)
			if got := sizeOf(w.Workload("a"), "main"); got != tc.size {
				t.Errorf("size = %d pods, want %d", got, tc.size)
			}
		})
	}
}

// TestNothingIsWrittenAfterTheOperatorEnds: thousands of decisions may be open when the operator ends, and each would
// fail.
func TestNothingIsWrittenAfterTheOperatorEnds(t *testing.T) {
	w := admissiontest.NewWorld(t, admissiontest.NewWorkload("a", 2, asked), admissiontest.NewClusterQueue("cq", "8"),
		admissiontest.NewLocalQueue("q", "cq"))
	d := newSingleWriter(t, w)
	d.Take(d.decision)
	ended, end := context.WithCancel(t.Context())
	end()
	d.Writer.Write(ended, d.decision.Key)
	if n := d.queue.NumRequeues(d.decision.Key); n != 0 || len(w.Written()) != 0 {
		t.Errorf("writes = %v and retries = %d, want none", w.Written(), n)
	}
}
