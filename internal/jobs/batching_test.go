package jobs

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/event"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
)

// TestNewWorkloadDoesNotTriggerAReconcile, since its job created it, unless it has a status or no owner, in which case
// a job may name it.
func TestNewWorkloadDoesNotTriggerAReconcile(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*kueue.Workload)
		tells  bool
	}{
		"just made":              {func(*kueue.Workload) {}, false},
		"made for it by another": {func(w *kueue.Workload) { w.Name = "prebuilt" }, true},
		"nobody's":               {func(w *kueue.Workload) { w.OwnerReferences = nil }, true},
		"going":                  {func(w *kueue.Workload) { w.DeletionTimestamp = ptr.To(metav1.Now()) }, true},
		"looked at":              {func(w *kueue.Workload) { w.Status.Conditions = []metav1.Condition{{Type: kueue.WorkloadQuotaReserved}} }, true},
		"admitted":               {func(w *kueue.Workload) { w.Status.Admission = &kueue.Admission{} }, true},
		"checked for its flavor": {func(w *kueue.Workload) { w.Status.AdmissionChecks = []kueue.AdmissionCheckState{{}} }, true},
	} {
		w := &kueue.Workload{ObjectMeta: metav1.ObjectMeta{Name: workloadName(schema.GroupVersionKind{Group: "batch", Version: "v1", Kind: "Job"}, "job", "u"), OwnerReferences: []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: "job", UID: "u", Controller: ptr.To(true)}}}}
		test.change(w)
		if got := isNewToJob(event.CreateEvent{Object: w}); got != test.tells {
			t.Errorf("%s: it tells its job something: %v, want %v", name, got, test.tells)
		}
	}
}
