package translate

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/musterhq/muster/internal/admission/admissiontest"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/engine/place"
)

func TestTranslateNode(t *testing.T) {
	w := newNodeWatch(5 * time.Second)
	b := admissiontest.Node("a", "cpu", "4", "nvidia.com/gpu", "8", "pods", "110").Cordoned().
		Tainted("t", corev1.TaintEffectNoSchedule).Ready(corev1.ConditionTrue, admissiontest.Now)
	want := place.Node{
		Name: "a", Labels: b.Node.Labels, Taints: b.Node.Spec.Taints, Cordoned: true,
		Allocatable: map[string]int64{"cpu": 4000, "nvidia.com/gpu": 8, "pods": 110},
	}
	if diff := cmp.Diff(want, w.set(b.Node, admissiontest.Now)); diff != "" {
		t.Errorf("node (-want +got):\n%s", diff)
	}
	if !w.due().IsZero() {
		t.Errorf("due at %v, want never", w.due())
	}
}

// TestATerminatingNodeIsCordoned: the node gets no new pods and keeps those it has, since the finalizer of its
// autoscaler waits for them.
func TestATerminatingNodeIsCordoned(t *testing.T) {
	if got := newNodeWatch(time.Minute).set(admissiontest.Node("a").Ready(corev1.ConditionTrue,
		admissiontest.Now).Deleting(admissiontest.Now).Node, admissiontest.Now); !got.Cordoned || got.Failed {
		t.Errorf("cordoned = %v, failed = %v, want cordoned only", got.Cordoned, got.Failed)
	}
}

func TestAnUnreadyNodeIsLostAfterItsGracePeriod(t *testing.T) {
	const grace = 5 * time.Second
	for name, tc := range map[string]struct {
		node   admissiontest.NodeBuilder
		failed bool
		lostAt time.Time // zero for never
	}{
		"ready": {admissiontest.Node("a").Ready(corev1.ConditionTrue,
			admissiontest.Now.Add(-time.Hour)), false, time.Time{}},
		"not ready since now": {admissiontest.Node("a").Ready(corev1.ConditionFalse, admissiontest.Now), false,
			admissiontest.Now.Add(grace)},
		"silent for two seconds": {admissiontest.Node("a").Ready(corev1.ConditionUnknown,
			admissiontest.Now.Add(-2*time.Second)), false, admissiontest.Now.Add(3 * time.Second)},
		"not ready for long": {admissiontest.Node("a").Ready(corev1.ConditionFalse,
			admissiontest.Now.Add(-time.Minute)), true, time.Time{}},
		"not ready by a clock that is ahead": {admissiontest.Node("a").Ready(corev1.ConditionFalse,
			admissiontest.Now.Add(time.Hour)), false, admissiontest.Now.Add(grace)},
		"no condition": {admissiontest.Node("a"), false, admissiontest.Now.Add(grace)},
		"terminating": {admissiontest.Node("a").Ready(corev1.ConditionTrue,
			admissiontest.Now).Deleting(admissiontest.Now), false, time.Time{}},
		"terminating and silent": {admissiontest.Node("a").Ready(corev1.ConditionUnknown,
			admissiontest.Now).Deleting(admissiontest.Now), false, admissiontest.Now.Add(grace)},
	} {
		t.Run(name, func(t *testing.T) {
			w := newNodeWatch(grace)
			if got := w.set(tc.node.Node, admissiontest.Now); got.Failed != tc.failed {
				t.Errorf("failed at once = %v, want %v", got.Failed, tc.failed)
			}
			if !w.due().Equal(tc.lostAt) {
				t.Errorf("due at %v, want %v", w.due(), tc.lostAt)
			}
			if tc.lostAt.IsZero() {
				return
			}
			if got := w.lost(tc.lostAt.Add(-1)); got != nil {
				t.Errorf("lost before the grace period ended: %+v", got)
			}
			got := w.lost(tc.lostAt)
			if len(got) != 1 || got[0].Name != "a" || !got[0].Failed {
				t.Errorf("lost = %+v, want node a failed", got)
			}
			if again := w.lost(tc.lostAt.Add(time.Hour)); again != nil || !w.due().IsZero() {
				t.Errorf("lost again %+v, due at %v, want neither", again, w.due())
			}
		})
	}
}

func TestANodeReadyAgainWithinItsGracePeriodIsNotLost(t *testing.T) {
	w := newNodeWatch(time.Minute)
	w.set(admissiontest.Node("a").Ready(corev1.ConditionFalse, admissiontest.Now).Node, admissiontest.Now)
	w.set(admissiontest.Node("b").Ready(corev1.ConditionFalse, admissiontest.Now).Node, admissiontest.Now)
	w.set(admissiontest.Node("a").Ready(corev1.ConditionTrue, admissiontest.Now).Node, admissiontest.Now)
	w.forget("b")
	if got := w.lost(admissiontest.Now.Add(time.Hour)); got != nil {
		t.Errorf("lost = %+v, want none", got)
	}
}

// TestANodeStaysUnreadySinceItWasReady: a node whose kubelet said that it is not ready, and which then falls silent,
// has been unready all the time, and a node that is lost stays lost. Only a new node of the name begins anew.
func TestANodeStaysUnreadySinceItWasReady(t *testing.T) {
	const grace = 2 * time.Minute
	of := func(uid types.UID, b admissiontest.NodeBuilder) *corev1.Node { b.Node.UID = uid; return b.Node }
	w := newNodeWatch(grace)
	w.set(of("1", admissiontest.Node("a").Ready(corev1.ConditionFalse, admissiontest.Now)), admissiontest.Now)
	silent := admissiontest.Now.Add(time.Minute)
	if got := w.set(of("1", admissiontest.Node("a").Ready(corev1.ConditionUnknown, silent)), silent); got.Failed ||
		!w.due().Equal(admissiontest.Now.Add(grace)) {
		t.Errorf("silent after a minute: failed = %v, due at %v, want it lost two minutes after it was ready, at %v",
			got.Failed, w.due(), admissiontest.Now.Add(grace))
	}
	if got := w.lost(admissiontest.Now.Add(grace)); len(got) != 1 {
		t.Errorf("lost = %+v, want node a", got)
	}
	later := admissiontest.Now.Add(grace + time.Second)
	if got := w.set(of("1", admissiontest.Node("a").Ready(corev1.ConditionFalse, later)), later); !got.Failed ||
		!w.due().IsZero() {
		t.Errorf("lost and then not ready: failed = %v, due at %v, want it failed and nothing due", got.Failed, w.due())
	}
	if got := w.set(of("2", admissiontest.Node("a").Ready(corev1.ConditionFalse, later)), later); got.Failed ||
		!w.due().Equal(later.Add(grace)) {
		t.Errorf("a new node: failed = %v, due at %v, want a grace period of its own", got.Failed, w.due())
	}
	w.set(of("2", admissiontest.Node("a").Ready(corev1.ConditionTrue, later)), later)
	if got := w.set(of("2", admissiontest.Node("a").Ready(corev1.ConditionFalse, later.Add(time.Hour))),
		later.Add(time.Hour)); got.Failed {
		t.Error("not ready again after it was ready: failed at once, want a grace period")
	}
}

func TestNodeChangeMatters(t *testing.T) {
	base := func() admissiontest.NodeBuilder {
		return admissiontest.Node("a", "cpu", "4").Ready(corev1.ConditionTrue, admissiontest.Now)
	}
	heartbeat := base()
	heartbeat.Node.Status.Conditions[0].LastHeartbeatTime = metav1.NewTime(admissiontest.Now.Add(time.Minute))
	for name, tc := range map[string]struct {
		after admissiontest.NodeBuilder
		want  bool
	}{
		"a heartbeat":   {heartbeat, false},
		"not ready":     {base().Ready(corev1.ConditionUnknown, admissiontest.Now), true},
		"a lost device": {admissiontest.Node("a", "cpu", "3").Ready(corev1.ConditionTrue, admissiontest.Now), true},
		"a taint":       {base().Tainted("t", corev1.TaintEffectNoExecute), true},
		"a cordon":      {base().Cordoned(), true},
		"another rack":  {base().Labeled("rack", "r2"), true},
		"being deleted": {base().Deleting(admissiontest.Now), true},
		"no change":     {base(), false},
	} {
		if got := ChangeMatters(base().Node, tc.after.Node); got != tc.want {
			t.Errorf("%s: changeMatters = %v, want %v", name, got, tc.want)
		}
	}
}

func TestTheTranslatorReportsWhatIsOverdue(t *testing.T) {
	tr := newTestTranslator()
	tr.Changed(admissiontest.Node("a").Ready(corev1.ConditionFalse, admissiontest.Now).Node, admissiontest.Now)
	tr.Changed(admissiontest.Unschedulable(admissiontest.BoundPod("p", "w", "")), admissiontest.Now)
	if want := admissiontest.Now.Add(bindPatience); !tr.NextDue().Equal(want) {
		t.Errorf("due at %v, want %v", tr.NextDue(), want)
	}
	if got := tr.Overdue(admissiontest.Now); got != nil {
		t.Errorf("overdue too early: %+v", got)
	}
	want := []engine.Event{engine.PodUnschedulable{Workload: engine.Key{Namespace: "ns", Name: "w"}, Node: "n"}}
	if diff := cmp.Diff(want, tr.Overdue(admissiontest.Now.Add(bindPatience))); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	if got := tr.Overdue(admissiontest.Now.Add(5 * time.Second)); len(got) != 1 || !got[0].(engine.NodeSet).Failed {
		t.Errorf("overdue = %+v, want the node failed", got)
	}
}
