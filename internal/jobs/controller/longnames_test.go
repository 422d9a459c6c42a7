package controller_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/ptr"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/jobs/batchjob"
	"github.com/musterhq/muster/internal/jobs/controller"
)

// TestAWorkloadWithALongNameIsKept: an earlier version made the Workload with a name of more than 63 bytes. The job
// follows it, waiting or with quota, and gets no other one.
func TestAWorkloadWithALongNameIsKept(t *testing.T) {
	for name, holds := range map[string]bool{"waiting": false, "with quota": true} {
		t.Run(name, func(t *testing.T) {
			job := newBatchJob("cq", true)
			job.Name = strings.Repeat("x", 63)
			w := newBatchWorld(t, fault{}, job, 0)
			w.reconcile()
			made := list[kueue.WorkloadList](w.world).Items[0]
			if len(made.Name) > 63 {
				t.Fatalf("the name %s has %d bytes", made.Name, len(made.Name))
			}
			if err := w.api.Delete(t.Context(), &made); err != nil {
				t.Fatal(err)
			}
			made = list[kueue.WorkloadList](w.world).Items[0] // its finalizer keeps it
			made.Finalizers = nil
			if err := w.api.Update(t.Context(), &made); err != nil {
				t.Fatal(err)
			}
			old := made.DeepCopy()
			old.Name, old.ResourceVersion, old.DeletionTimestamp = controller.LongWorkloadName(batchjob.API.Kind, job), "", nil
			old.Finalizers = []string{kueue.ResourceInUseFinalizer}
			if err := w.api.Create(t.Context(), old); err != nil {
				t.Fatal(err)
			}
			if holds {
				w.admit()
			}
			for range 5 {
				w.reconcile()
			}
			all := list[kueue.WorkloadList](w.world).Items
			if len(all) != 1 || all[0].Name != old.Name || !all[0].DeletionTimestamp.IsZero() {
				t.Fatalf("Workloads: %+v", all)
			}
			if resumed := !ptr.Deref(w.batchJob().Spec.Suspend, false); resumed != holds {
				t.Errorf("resumed: %v, want %v", resumed, holds)
			}
			if holds {
				w.settle()
				if all := list[kueue.WorkloadList](w.world).Items; !meta.IsStatusConditionTrue(all[0].Status.Conditions,
					kueue.WorkloadFinished) {
					t.Errorf("the end of the job is not reported: %+v", all[0].Status)
				}
			}
		})
	}
}
