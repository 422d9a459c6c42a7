package lifecycle

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/workload"
)

// orphanedMessage is the message of the Finished condition of a Workload whose job is gone.
const orphanedMessage = "The job that the workload was created for no longer exists"

// orphaned reports whether the Workload was made for a job but has no owner any more, for instance after the job was
// deleted with the propagation policy Orphan.
func orphaned(w *kueue.Workload) bool {
	return len(w.OwnerReferences) == 0 && w.Labels[kueue.JobUIDLabel] != ""
}

// removeFinalizer removes the finalizer of a deleted Workload that has no job or has finished. Package jobs removes
// that of others, when the job's pods are gone.
func removeFinalizer(w *kueue.Workload) Step {
	i := slices.Index(w.Finalizers, kueue.ResourceInUseFinalizer)
	if i < 0 || len(w.OwnerReferences) > 0 && !workload.IsFinished(w) {
		return Step{}
	}
	out := w.DeepCopy()
	out.Finalizers = slices.Delete(out.Finalizers, i, i+1)
	return Step{Object: out}
}

// finished deletes a finished Workload after its retention period.
func (d *draft) finished() Step {
	finished := meta.FindStatusCondition(d.w.Status.Conditions, kueue.WorkloadFinished)
	if d.policy.AfterFinished != nil && d.reached(finished.LastTransitionTime.Add(*d.policy.AfterFinished)) {
		return Step{Delete: TheWorkload}
	}
	return d.step()
}

// expired reports whether a Workload that was deactivated by the operator, and whose pods are gone, was kept long
// enough.
func (d *draft) expired() bool {
	evicted := meta.FindStatusCondition(d.w.Status.Conditions, kueue.WorkloadEvicted)
	ours := evicted != nil && evicted.Status == metav1.ConditionTrue && strings.HasPrefix(evicted.Reason, kueue.WorkloadDeactivatedDueTo)
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
