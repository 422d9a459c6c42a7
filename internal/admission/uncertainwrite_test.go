package admission

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
	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/api/muster"
	"github.com/musterhq/muster/internal/config"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/engine/place"
	"github.com/musterhq/muster/internal/workload"
)

// given returns an admission of that many pods of one cpu.
func given(count int32) *engine.Admission {
	return &engine.Admission{ClusterQueue: "cq", PodSets: []engine.Assignment{{PodSet: "main", Count: count,
		Flavors: map[string]string{"cpu": "f"}, Usage: map[string]int64{"cpu": int64(count) * 1000}, Places: []place.NodeCount{{Node: "n", Count: count}}}}}
}

// runningWriter returns a singleWriter with the decision about ns/a, which requests three pods and runs with two.
func runningWriter(t *testing.T, d engine.Decision) (*world, *singleWriter) {
	t.Helper()
	w := newWorld(t, newWorkload("a", 3, asked), newWorkload("b", 1, asked), placedFlavor("f", "t"), topology("t", corev1.LabelHostname), newClusterQueue("cq", "8"), newLocalQueue("q", "cq"))
	var a kueue.Workload
	a.Name, a.Namespace = "a", "ns"
	w.editStatus(&a, func() {
		a.Status.Admission = &kueue.Admission{ClusterQueue: "cq", PodSetAssignments: []kueue.PodSetAssignment{{Name: "main", Count: ptr.To[int32](2),
			Flavors: map[corev1.ResourceName]kueue.ResourceFlavorReference{"cpu": "f"}, ResourceUsage: quantities("cpu", "2")}}}
		workload.SetCondition(&a, kueue.WorkloadQuotaReserved, metav1.ConditionTrue, kueue.WorkloadQuotaReserved, "", now)
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
			w.before = func(string) error { return refusal }
			d.work(t, 2) // the second attempt reports it, after the backoff
			want := []engine.Event{engine.Refused{Key: d.decision.Key, UID: "a-uid", Serial: 7, Message: refusal.Error(), At: now}}
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
	w.before = func(string) error {
		return apierrors.NewForbidden(schema.GroupResource{Resource: "workloads"}, "a", errors.New("a policy says no"))
	}
	for range 20 {
		d.work(t, 2)
	}
	if next := d.denials.When(struct{}{}); next != longestRetry {
		t.Errorf("after 20 refusals the next is reported after %v, want %v", next, longestRetry)
	}
	w.before = func(string) error { return nil }
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
			workload.SetCondition(a, kueue.WorkloadPodsReady, metav1.ConditionTrue, kueue.WorkloadStarted, "", now)
		}, 3},
		"grown, and shrunk again": {func(a *kueue.Workload) {
			workload.SetCondition(a, muster.ResizedCondition, metav1.ConditionTrue, muster.ShrunkReason, "pod set main from 3 to 2 pods", now)
		}, 2},
		"evicted, and admitted again": {func(a *kueue.Workload) {
			workload.SetCondition(a, kueue.WorkloadQuotaReserved, metav1.ConditionTrue, kueue.WorkloadQuotaReserved, "again", now)
		}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			w, d := runningWriter(t, grows)
			w.before = once(apierrors.NewTimeoutError("no answer", 1))
			d.take(d.decision)
			d.decisionWriter.write(t.Context(), d.decision.Key)
			a := w.workload("a")
			w.editStatus(a, func() { tc.change(a) })
			d.decisionWriter.write(t.Context(), d.decision.Key)
			if got := sizeOf(w.workload("a"), "main"); got != tc.size {
				t.Errorf("size = %d pods, want %d", got, tc.size)
			}
		})
	}
}

// TestDroppedDecisionsAreNotWritten: the response to an admission was lost. By the time of the retry, the Workload has
// released its quota, and another one holds it.
func TestDroppedDecisionsAreNotWritten(t *testing.T) {
	a, b := newWorkload("a", 4, asked), newWorkload("b", 4, asked)
	b.Spec.Priority = ptr.To[int32](1)
	objects := []client.Object{namespace.DeepCopy(), newFlavor("f"), newClusterQueue("cq", "4"), newLocalQueue("q", "cq"), a}
	w := newWorld(t, objects...)
	l := newLoop(manager{feed: &feed{world: w}}, config.Default())
	observe := func(objects ...client.Object) {
		for _, o := range objects {
			l.mailbox.put(message{changed: o})
		}
		l.turn()
	}
	observe(objects...)
	w.after = once(apierrors.NewTimeoutError("no answer", 1))
	l.decisions.write(t.Context(), keyOf(a))
	observe(w.workload("a"))

	w.editStatus(a, func() {
		workload.Evict(a, workload.Eviction{Reason: kueue.WorkloadEvictedByPreemption, Message: "by another client"}, now)
	})
	w.put(b)
	observe(w.workload("a"), b)
	l.decisions.write(t.Context(), keyOf(b))
	l.decisions.write(t.Context(), keyOf(a))
	if !workload.HoldsQuota(w.workload("b")) {
		t.Error("b holds no quota, want the quota that a released")
	}
	if workload.HoldsQuota(w.workload("a")) {
		t.Error("both a and b hold the quota of 4 cpu")
	}
}

// TestQuotaReleasedMeanwhileIsNotGivenAgain: the response to an admission was lost, and the Workload released its quota
// before the engine observed either.
func TestQuotaReleasedMeanwhileIsNotGivenAgain(t *testing.T) {
	a := newWorkload("a", 4, asked)
	objects := []client.Object{namespace.DeepCopy(), newFlavor("f"), newClusterQueue("cq", "4"), newLocalQueue("q", "cq"), a}
	w := newWorld(t, objects...)
	l := newLoop(manager{feed: &feed{world: w}}, config.Default())
	for _, o := range objects {
		l.mailbox.put(message{changed: o})
	}
	l.turn()
	w.after = once(apierrors.NewTimeoutError("no answer", 1))
	l.decisions.write(t.Context(), keyOf(a))
	if !workload.HoldsQuota(w.workload("a")) {
		t.Fatal("the write whose response was lost took no effect")
	}
	w.editStatus(a, func() {
		workload.Evict(a, workload.Eviction{Reason: kueue.WorkloadEvictedByPreemption, Message: "by another client"}, now)
	})
	l.decisions.write(t.Context(), keyOf(a))
	if workload.HoldsQuota(w.workload("a")) {
		t.Error("the Workload was given quota that another one may hold by now")
	}
	l.turn() // applies that the decision was superseded, and decides again
	l.decisions.write(t.Context(), keyOf(a))
	if !workload.HoldsQuota(w.workload("a")) {
		t.Error("the Workload holds no quota although it is the only one")
	}
}

// TestNothingIsWrittenAfterTheOperatorEnds: thousands of decisions may be open when the operator ends, and each would
// fail.
func TestNothingIsWrittenAfterTheOperatorEnds(t *testing.T) {
	w := newWorld(t, newWorkload("a", 2, asked), newClusterQueue("cq", "8"), newLocalQueue("q", "cq"))
	d := newSingleWriter(t, w)
	d.take(d.decision)
	ended, end := context.WithCancel(t.Context())
	end()
	d.decisionWriter.write(ended, d.decision.Key)
	if n := d.queue.NumRequeues(d.decision.Key); n != 0 || len(w.written()) != 0 {
		t.Errorf("writes = %v and retries = %d, want none", w.written(), n)
	}
}
