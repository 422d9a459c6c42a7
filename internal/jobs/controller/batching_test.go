package controller

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/jobs/workloads"
)

// TestAChildThatChangesItsControllerTriggersAReconcile of the job that it leaves and of the one that it joins, even if
// no update of such a child matters otherwise.
func TestAChildThatChangesItsControllerTriggersAReconcile(t *testing.T) {
	api := jobs.API[*corev1.Pod]{Watch: jobs.Watch{Matters: func(client.Object, client.Object) bool { return false }}}
	controlledBy := func(uid types.UID) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{{UID: uid,
			Controller: ptr.To(true)}}}}
	}
	for name, tc := range map[string]struct {
		before, after *corev1.Pod
		want          bool
	}{
		"owner kept":    {controlledBy("a"), controlledBy("a"), false},
		"owner removed": {controlledBy("a"), &corev1.Pod{}, true},
		"owner added":   {&corev1.Pod{}, controlledBy("a"), true},
		"owner changed": {controlledBy("a"), controlledBy("b"), true},
		"never owned":   {&corev1.Pod{}, &corev1.Pod{}, false},
	} {
		if got := Serve(api).(served[*corev1.Pod]).needsReconcile(event.UpdateEvent{ObjectOld: tc.before,
			ObjectNew: tc.after}); got != tc.want {
			t.Errorf("%s: the update triggers a reconcile: %t, want %t", name, got, tc.want)
		}
	}
}

// TestNewWorkloadDoesNotTriggerAReconcile of the job that has just created it. A Workload that another client created,
// or that has a status or is being deleted already, does.
func TestNewWorkloadDoesNotTriggerAReconcile(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*kueue.Workload)
		want   bool
	}{
		"created by the job": {func(*kueue.Workload) {}, false},
		"of another name":    {func(w *kueue.Workload) { w.Name = "prebuilt" }, true},
		"without an owner":   {func(w *kueue.Workload) { w.OwnerReferences = nil }, true},
		"terminating":        {func(w *kueue.Workload) { w.DeletionTimestamp = ptr.To(metav1.Now()) }, true},
		"with a condition": {func(w *kueue.Workload) {
			w.Status.Conditions = []metav1.Condition{{Type: kueue.WorkloadQuotaReserved}}
		}, true},
		"admitted": {func(w *kueue.Workload) { w.Status.Admission = &kueue.Admission{} }, true},
		"with the state of a check": {func(w *kueue.Workload) {
			w.Status.AdmissionChecks = []kueue.AdmissionCheckState{{}}
		}, true},
	} {
		w :=
			&kueue.Workload{ObjectMeta: metav1.ObjectMeta{Name: workloads.Names(schema.GroupVersionKind{Group: "batch",
				Version: "v1", Kind: "Job"}, "job", "u")[0],
				OwnerReferences: []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: "job", UID: "u",
					Controller: ptr.To(true)}}}}
		test.change(w)
		if got := isNewToJob(event.CreateEvent{Object: w}); got != test.want {
			t.Errorf("%s: the create event triggers a reconcile: %v, want %v", name, got, test.want)
		}
	}
}
