package decisions

import (
	"context"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/admission/translate"
)

// LogChange logs a written decision in one line, from which the job can be found by kind, namespace and name. Other
// status changes are not logged.
func LogChange(ctx context.Context, before, after *kueue.Workload) {
	c, ok := changeOf(before, after)
	if !ok && placesMoved(before, after) {
		c, ok = change{Reason: "Replaced", Message: "Pods were given other places than before"}, true
	}
	if !ok {
		return
	}
	ctrl.LoggerFrom(ctx).Info("decided", "decision", c.Reason, "job", jobName(after), "workload",
		translate.KeyOf(after).String(), "clusterQueue", FirstQueueOf(after, before), "message", c.Message)
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

// FirstQueueOf returns the ClusterQueue whose quota a Workload holds in the first of the states in which it holds any,
// "" if in none.
func FirstQueueOf(states ...*kueue.Workload) string {
	for _, w := range states {
		if w.Status.Admission != nil {
			return string(w.Status.Admission.ClusterQueue)
		}
	}
	return ""
}
