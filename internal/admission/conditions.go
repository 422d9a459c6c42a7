package admission

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/engine"
	"github.com/musterhq/muster/internal/engine/quota"
	"github.com/musterhq/muster/internal/engine/reason"
)

// admit writes into a Workload's status what the engine gave it. It is one write:
// quota and admission together.
func admit(w *kueue.Workload, given *engine.Admission, now time.Time) {
	w.Status.Admission = &kueue.Admission{ClusterQueue: kueue.ClusterQueueReference(given.ClusterQueue)}
	for _, a := range given.PodSets {
		assignment := kueue.PodSetAssignment{
			Name:          kueue.PodSetReference(a.PodSet),
			Count:         ptr.To(a.Count),
			Flavors:       map[corev1.ResourceName]kueue.ResourceFlavorReference{},
			ResourceUsage: corev1.ResourceList{},
		}
		for resource, name := range a.Flavors {
			assignment.Flavors[corev1.ResourceName(resource)] = kueue.ResourceFlavorReference(name)
			assignment.ResourceUsage[corev1.ResourceName(resource)] = quota.ToQuantity(corev1.ResourceName(resource), a.Usage[resource])
		}
		w.Status.Admission.PodSetAssignments = append(w.Status.Admission.PodSetAssignments, assignment)
	}
	set(w, kueue.WorkloadQuotaReserved, metav1.ConditionTrue, kueue.WorkloadQuotaReservedReason,
		fmt.Sprintf("Quota reserved in ClusterQueue %s", given.ClusterQueue), now)
	set(w, kueue.WorkloadAdmitted, metav1.ConditionTrue, kueue.WorkloadAdmittedReason, "The workload is admitted", now)
	for _, past := range []string{kueue.WorkloadEvicted, kueue.WorkloadPreempted} {
		if c := meta.FindStatusCondition(w.Status.Conditions, past); c != nil && c.Status == metav1.ConditionTrue {
			set(w, past, metav1.ConditionFalse, kueue.WorkloadQuotaReservedReason, "Previously: "+c.Message, now)
		}
	}
}

// wait writes into a Workload's status why it waits.
func wait(w *kueue.Workload, why reason.Reason, now time.Time) {
	set(w, kueue.WorkloadQuotaReserved, metav1.ConditionFalse, string(why.Code), why.Message(), now)
}

func set(w *kueue.Workload, kind string, status metav1.ConditionStatus, reason, message string, now time.Time) {
	meta.SetStatusCondition(&w.Status.Conditions, metav1.Condition{
		Type: kind, Status: status, Reason: reason, Message: cut(message),
		ObservedGeneration: w.Generation, LastTransitionTime: metav1.NewTime(now),
	})
}

// conditionMessageBytes is the API's limit of a condition's message.
const conditionMessageBytes = 32768

func cut(message string) string {
	return strings.ToValidUTF8(message[:min(len(message), conditionMessageBytes)], "")
}
