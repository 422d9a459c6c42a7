package lifecycle

import (
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/workload"
)

// orphanRetention is how long an orphaned Workload is kept after its end, unless that is configured: there is no job
// with which it would be deleted.
const orphanRetention = 5 * time.Minute

// removeFinalizer removes the finalizer of a deleted Workload that has no job or has finished. Package jobs removes
// that of others, and of orphaned ones with quota, when the job's pods are gone.
func removeFinalizer(w *kueue.Workload) Step {
	i := slices.Index(w.Finalizers, kueue.ResourceInUseFinalizer)
	reported := workload.IsOwned(w) && (!workload.IsOrphaned(w) || workload.HoldsQuota(w))
	if i < 0 || reported && !workload.IsFinished(w) {
		return Step{}
	}
	out := w.DeepCopy()
	out.Finalizers = slices.Delete(out.Finalizers, i, i+1)
	return Step{Object: out}
}

// finished deletes a finished Workload after its retention period. Without one it is kept for as long as its job.
func (d *draft) finished() Step {
	finished := meta.FindStatusCondition(d.w.Status.Conditions, kueue.WorkloadFinished)
	keep := d.policy.AfterFinished
	if keep == nil && workload.IsOrphaned(d.w) {
		keep = ptr.To(orphanRetention)
	}
	if keep != nil && d.reached(finished.LastTransitionTime.Add(*keep)) {
		return Step{Delete: TheWorkload}
	}
	return d.step()
}

// expired reports whether a Workload that was deactivated by the operator, and whose pods are gone, was kept long
// enough.
func (d *draft) expired() bool {
	evicted := workload.IfTrue(d.w, kueue.WorkloadEvicted)
	ours := evicted != nil && strings.HasPrefix(evicted.Reason, kueue.WorkloadDeactivatedDueTo)
	return !d.changed && ours && !workload.HoldsQuota(d.w) && d.policy.AfterDeactivated != nil &&
		d.reached(evicted.LastTransitionTime.Add(*d.policy.AfterDeactivated))
}

// jobOrWorkload returns what to delete after a Workload was deactivated for long enough.
func jobOrWorkload(w *kueue.Workload) Deletion {
	if metav1.GetControllerOf(w) != nil {
		return TheJob
	}
	return TheWorkload
}
