package lifecycle

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/workload"
)

// orphanedMessage is that of Finished for a Workload whose job is gone.
const orphanedMessage = "The job that the workload was made for is gone"

// orphaned reports whether the Workload was made for a job and is nobody's now, as when a job was deleted but what it owns
// was to stay.
func orphaned(w *kueue.Workload) bool {
	return len(w.OwnerReferences) == 0 && w.Labels[kueue.JobUIDLabel] != ""
}

// letGo lets a deleted Workload go that nobody else would: one without a job, or that is over. Those of a job go when its
// pods are gone, which package jobs sees to.
func letGo(w *kueue.Workload) Step {
	i := slices.Index(w.Finalizers, kueue.ResourceInUseFinalizer)
	if i < 0 || len(w.OwnerReferences) > 0 && !workload.IsFinished(w) {
		return Step{}
	}
	out := w.DeepCopy()
	out.Finalizers = slices.Delete(out.Finalizers, i, i+1)
	return Step{Object: out}
}

// finished deletes what is over when its time has come.
func (d *draft) finished() Step {
	finished := meta.FindStatusCondition(d.w.Status.Conditions, kueue.WorkloadFinished)
	if d.policy.AfterFinished != nil && d.reached(finished.LastTransitionTime.Add(*d.policy.AfterFinished)) {
		return Step{Delete: TheWorkload}
	}
	return d.step()
}

// expired reports whether a Workload that was deactivated here, and whose pods are gone, has been kept long enough.
func (d *draft) expired() bool {
	evicted := meta.FindStatusCondition(d.w.Status.Conditions, kueue.WorkloadEvicted)
	ours := evicted != nil && evicted.Status == metav1.ConditionTrue && strings.HasPrefix(evicted.Reason, kueue.WorkloadDeactivatedDueTo)
	return !d.changed && ours && !workload.HoldsQuota(d.w) && d.policy.AfterDeactivated != nil &&
		d.reached(evicted.LastTransitionTime.Add(*d.policy.AfterDeactivated))
}

// jobOrWorkload is what goes when a Workload has been deactivated for long enough.
func jobOrWorkload(w *kueue.Workload) Deletion {
	if metav1.GetControllerOf(w) != nil {
		return TheJob
	}
	return TheWorkload
}
