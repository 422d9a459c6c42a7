package placer

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/event"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
)

// TestEventsOfWorkloadsThatTriggerAReconcile: those after which pods may be given places, or have lost theirs. The
// status of a Workload changes for many other reasons.
func TestEventsOfWorkloadsThatTriggerAReconcile(t *testing.T) {
	placed := admitted(on("a", 2))
	with := func(change func(*kueue.Workload)) *kueue.Workload {
		out := placed.DeepCopy()
		change(out)
		return out
	}
	assignment := func(w *kueue.Workload) *kueue.PodSetAssignment { return &w.Status.Admission.PodSetAssignments[0] }
	waiting := with(func(w *kueue.Workload) { w.Status = kueue.WorkloadStatus{} })
	unplaced := with(func(w *kueue.Workload) { assignment(w).TopologyAssignment = nil })
	smaller := with(func(w *kueue.Workload) {
		assignment(w).TopologyAssignment, assignment(w).Count = nil, ptr.To[int32](1)
	})
	repaired := with(func(w *kueue.Workload) { *w = *admitted(on("b", 2)) })
	shrinking := with(func(w *kueue.Workload) {
		assignment(w).Count, w.Status.ResourceRequests = ptr.To[int32](1), []kueue.PodSetRequest{{Name: "main"}}
	})
	shrunk := with(func(w *kueue.Workload) { assignment(w).Count = ptr.To[int32](1) })
	ready := with(func(w *kueue.Workload) {
		w.Status.Conditions = append(w.Status.Conditions,
			metav1.Condition{Type: kueue.WorkloadPodsReady, Status: metav1.ConditionTrue})
	})
	for name, tc := range map[string]struct {
		was, is *kueue.Workload
		want    bool
	}{
		"it is admitted":                       {waiting, placed, true},
		"it is admitted without places":        {waiting, unplaced, false},
		"it loses its admission":               {placed, waiting, true},
		"it gets other places":                 {placed, repaired, true},
		"it begins to shrink":                  {placed, shrinking, true},
		"its shrink has ended":                 {shrinking, shrunk, true},
		"its pods are ready":                   {placed, ready, false},
		"it changes its size without places":   {unplaced, smaller, false},
		"it is listed again":                   {placed, placed, false},
		"it is listed again while it waits":    {waiting, waiting, false},
		"it is listed again during its shrink": {shrinking, shrinking, false},
		"it waits and has another annotation": {waiting,
			with(func(w *kueue.Workload) { *w = *waiting; w.Annotations = map[string]string{"a": "b"} }), false},
		"it is placed and has another annotation": {placed,
			with(func(w *kueue.Workload) { w.Annotations = map[string]string{"a": "b"} }), false},
	} {
		if got := placesChanged().Update(event.UpdateEvent{ObjectOld: tc.was, ObjectNew: tc.is}); got != tc.want {
			t.Errorf("%s: a reconcile = %v, want %v", name, got, tc.want)
		}
	}
	for name, tc := range map[string]struct {
		w    *kueue.Workload
		want bool
	}{"with places": {placed, true}, "without places": {unplaced, false}, "waiting": {waiting, false}} {
		created, deleted := placesChanged().Create(event.CreateEvent{Object: tc.w}),
			placesChanged().Delete(event.DeleteEvent{Object: tc.w})
		if created != tc.want || deleted != tc.want {
			t.Errorf("a Workload %s: a reconcile when it appears = %v and goes = %v, want %v", name, created, deleted, tc.want)
		}
	}
}

// TestEventsOfPodsThatTriggerAReconcile: those of pods that wait for a place, or after which a place is free or taken
// by a pod that nobody has given it. Pods report their status far more often.
func TestEventsOfPodsThatTriggerAReconcile(t *testing.T) {
	gatedPod := func() podBuilder { return pod("p").of("wl") }
	bare := func() podBuilder { b := gatedPod(); b.Annotations = nil; return b }
	for name, tc := range map[string]struct {
		was, is podBuilder
		want    bool
	}{
		"gated":                    {gatedPod(), gatedPod(), true},
		"gated and of no Workload": {bare(), bare(), false},
		"recreated": {gatedPod().at("a"),
			func() podBuilder { b := gatedPod().at("a"); b.UID = "another"; return b }(), true},
		"bound where it was placed":        {gatedPod().at("a"), gatedPod().at("a").bound("a"), false},
		"bound without having been placed": {gatedPod().bound(""), gatedPod().bound("a"), true},
		"starting to run": {gatedPod().bound("a"),
			func() podBuilder { b := gatedPod().bound("a"); b.Status.Phase = corev1.PodRunning; return b }(), false},
		"ended": {gatedPod().at("a"), gatedPod().at("a").done(), true},
		"ended, with more of its status": {gatedPod().at("a").done(),
			func() podBuilder { b := gatedPod().at("a").done(); b.Status.Message = "x"; return b }(), false},
		"deleted":         {gatedPod().at("a"), gatedPod().at("a").terminating(), true},
		"deleted before":  {gatedPod().at("a").terminating(), gatedPod().at("a").terminating(), false},
		"given its place": {gatedPod(), gatedPod().at("a"), false},
	} {
		if got := relevantPods().Update(event.UpdateEvent{ObjectOld: tc.was.Pod, ObjectNew: tc.is.Pod}); got != tc.want {
			t.Errorf("a pod that is %s: a reconcile = %v, want %v", name, got, tc.want)
		}
	}
	for want, b := range map[bool]podBuilder{true: gatedPod(), false: bare()} {
		created, deleted := relevantPods().Create(event.CreateEvent{Object: b.Pod}),
			relevantPods().Delete(event.DeleteEvent{Object: b.Pod})
		if requests := requestsOf(t.Context(), b.Pod); created != want || deleted != want || len(requests) > 0 != want {
			t.Errorf("a reconcile when the pod appears = %v and goes = %v, of %v; want %v", created, deleted, requests, want)
		}
	}
}
