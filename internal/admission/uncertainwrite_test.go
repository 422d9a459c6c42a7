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

// deskOfOneThatRuns returns a desk with the decision about ns/a, which requests three pods and runs with two.
func deskOfOneThatRuns(t *testing.T, d engine.Decision) (*world, *desk) {
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
	return w, newDeskOf(w, d)
}

// TestRefusalsAreReported: the engine then backs off for that Workload, and looks for others meanwhile.
func TestRefusalsAreReported(t *testing.T) {
	for name, decision := range map[string]engine.Decision{
		"other places": {Replace: given(2)},
		"fewer pods":   {Resize: &engine.Resize{Admission: given(1), PodSet: "main", From: 2, To: 1}},
		"more pods":    {Resize: &engine.Resize{Admission: given(3), PodSet: "main", From: 2, To: 3}},
		"an eviction":  {Evict: &engine.Eviction{Preemptor: engine.Key{Namespace: "ns", Name: "b"}}},
	} {
		t.Run(name, func(t *testing.T) {
			w, d := deskOfOneThatRuns(t, decision)
			refusal := apierrors.NewForbidden(schema.GroupResource{Resource: "workloads"}, "a", errors.New("a policy says no"))
			w.before = func(string) error { return refusal }
			d.work(t, 2) // the second attempt reports it, after the backoff
			want := []engine.Event{engine.Refused{Key: d.decision.Key, UID: "a-uid", Serial: 7, Message: refusal.Error(), At: now}}
			if diff := cmp.Diff(want, d.told); diff != "" {
				t.Errorf("told (-want +got):\n%s", diff)
			}
		})
	}
}

// TestRefusalReportsBackOff: if the API server refused every write of the operator, all workloads with quota would be
// tried one after the other.
func TestRefusalReportsBackOff(t *testing.T) {
	w, d := deskOfOneThatRuns(t, engine.Decision{Evict: &engine.Eviction{Preemptor: engine.Key{Namespace: "ns", Name: "b"}}})
	w.before = func(string) error {
		return apierrors.NewForbidden(schema.GroupResource{Resource: "workloads"}, "a", errors.New("a policy says no"))
	}
	for range 20 {
		d.work(t, 2)
	}
	if next := d.denials.When(struct{}{}); next != longestRetry {
		t.Errorf("after 20 refusals the next is told after %v, want %v", next, longestRetry)
	}
	w.before = func(string) error { return nil }
	d.work(t, 1)
	if next := d.denials.When(struct{}{}); next >= time.Second {
		t.Errorf("once something is taken, the next refusal is told after %v", next)
	}
}

// TestUnrelatedChangesDoNotOvertakeAResize between two attempts, the first of which may have taken effect; a resize
// by another client does.
func TestUnrelatedChangesDoNotOvertakeAResize(t *testing.T) {
	grows := engine.Decision{Resize: &engine.Resize{Admission: given(3), PodSet: "main", From: 2, To: 3}}
	for name, tc := range map[string]struct {
		change func(a *kueue.Workload)
		size   int32
	}{
		"its pods are ready": {func(a *kueue.Workload) {
			workload.SetCondition(a, kueue.WorkloadPodsReady, metav1.ConditionTrue, kueue.WorkloadStarted, "", now)
		}, 3},
		"it grew, and gave that back": {func(a *kueue.Workload) {
			workload.SetCondition(a, muster.ResizedCondition, metav1.ConditionTrue, muster.ShrunkReason, "pod set main from 3 to 2 pods", now)
		}, 2},
		"it went, and came back": {func(a *kueue.Workload) {
			workload.SetCondition(a, kueue.WorkloadQuotaReserved, metav1.ConditionTrue, kueue.WorkloadQuotaReserved, "again", now)
		}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			w, d := deskOfOneThatRuns(t, grows)
			w.before = once(apierrors.NewTimeoutError("no answer", 1))
			d.take(d.decision)
			d.decisionWriter.write(t.Context(), d.decision.Key)
			a := w.workload("a")
			w.editStatus(a, func() { tc.change(a) })
			d.decisionWriter.write(t.Context(), d.decision.Key)
			if got := sizeOf(w.workload("a"), "main"); got != tc.size {
				t.Errorf("it has %d pods, want %d", got, tc.size)
			}
		})
	}
}

// TestDroppedDecisionsAreNotWritten: an admission was written and the response lost; the Workload has released its
// quota, and another has it by the time of the retry.
func TestDroppedDecisionsAreNotWritten(t *testing.T) {
	a, b := newWorkload("a", 4, asked), newWorkload("b", 4, asked)
	b.Spec.Priority = ptr.To[int32](1)
	objects := []client.Object{namespace.DeepCopy(), newFlavor("f"), newClusterQueue("cq", "4"), newLocalQueue("q", "cq"), a}
	w := newWorld(t, objects...)
	l := newLoop(manager{feed: &feed{world: w}}, config.Default())
	hear := func(objects ...client.Object) {
		for _, o := range objects {
			l.mailbox.put(message{changed: o})
		}
		l.turn()
	}
	hear(objects...)
	w.after = once(apierrors.NewTimeoutError("no answer", 1))
	l.decisions.write(t.Context(), keyOf(a))
	hear(w.workload("a"))

	w.editStatus(a, func() {
		workload.Evict(a, workload.Eviction{Reason: kueue.WorkloadEvictedByPreemption, Message: "by somebody else"}, now)
	})
	w.put(b)
	hear(w.workload("a"), b)
	l.decisions.write(t.Context(), keyOf(b))
	l.decisions.write(t.Context(), keyOf(a))
	if !workload.HoldsQuota(w.workload("b")) {
		t.Error("b has not got what a gave back")
	}
	if workload.HoldsQuota(w.workload("a")) {
		t.Error("both hold the 4 cpu that there are")
	}
}

// TestQuotaReleasedMeanwhileIsNotGivenAgain: the response to an admission was lost, and the Workload has released its
// quota before the engine knows of either.
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
		t.Fatal("the write that nobody saw took no effect")
	}
	w.editStatus(a, func() {
		workload.Evict(a, workload.Eviction{Reason: kueue.WorkloadEvictedByPreemption, Message: "by somebody else"}, now)
	})
	l.decisions.write(t.Context(), keyOf(a))
	if workload.HoldsQuota(w.workload("a")) {
		t.Error("it is given quota that may be another's by now")
	}
	l.turn() // applies that the decision was superseded, and decides again
	l.decisions.write(t.Context(), keyOf(a))
	if !workload.HoldsQuota(w.workload("a")) {
		t.Error("nobody is there, and it gets nothing")
	}
}

// TestNothingIsWrittenAfterTheOperatorEnds: thousands of decisions may be open then, each of which would fail.
func TestNothingIsWrittenAfterTheOperatorEnds(t *testing.T) {
	w := newWorld(t, newWorkload("a", 2, asked), newClusterQueue("cq", "8"), newLocalQueue("q", "cq"))
	d := newDesk(t, w)
	d.take(d.decision)
	ended, end := context.WithCancel(t.Context())
	end()
	d.decisionWriter.write(ended, d.decision.Key)
	if n := d.queue.NumRequeues(d.decision.Key); n != 0 || len(w.written()) != 0 {
		t.Errorf("it wrote %v, and is to be tried again %d times", w.written(), n)
	}
}
