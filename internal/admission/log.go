package admission

import (
	"context"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
)

// logChange logs a written decision in one line, from which the job can be found by kind, namespace and name. Other
// status changes are not logged.
func logChange(ctx context.Context, before, after *kueue.Workload) {
	c, ok := changeOf(before, after)
	if !ok && placesMoved(before, after) {
		c, ok = change{reason: "Replaced", message: "Pods were given other places than before"}, true
	}
	if !ok {
		return
	}
	ctrl.LoggerFrom(ctx).Info("decided", "decision", c.reason, "job", jobName(after), "workload", keyOf(after).String(), "clusterQueue", firstQueueOf(after, before), "message", c.message)
}

// jobName returns the Workload's job as kind/namespace/name; for a Workload that no job controls, the Workload itself.
func jobName(w *kueue.Workload) string {
	kind, name := "Workload", w.Name
	if owner := metav1.GetControllerOf(w); owner != nil {
		kind, name = owner.Kind, owner.Name
	}
	return kind + "/" + w.Namespace + "/" + name
}

// placesMoved reports whether places of an admitted Workload's pods changed.
func placesMoved(before, after *kueue.Workload) bool {
	if before.Status.Admission == nil || after.Status.Admission == nil {
		return false
	}
	was, is := before.Status.Admission.PodSetAssignments, after.Status.Admission.PodSetAssignments
	for i := range is {
		if i < len(was) && !equality.Semantic.DeepEqual(was[i].TopologyAssignment, is[i].TopologyAssignment) {
			return true
		}
	}
	return false
}
