package admission

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/api/muster"
	"github.com/musterhq/muster/internal/workload"
)

const (
	// eventAction is the action of every event told here.
	eventAction = "Deciding"
	// eventMessageBytes is the API's limit of an event's note.
	eventMessageBytes = 1024
)

// teller tells people what was decided about their job: on the job, which they know,
// and only while the API server has time for it. A nil one tells nothing.
type teller struct {
	recorder events.EventRecorder
	budget   *writeBudget
}

// changed tells what a written status changed that people want to hear of.
func (t *teller) changed(before, after *kueue.Workload) {
	owner := metav1.GetControllerOf(after)
	if t == nil || owner == nil || !t.budget.quiet() {
		return
	}
	job := &corev1.ObjectReference{APIVersion: owner.APIVersion, Kind: owner.Kind, Namespace: after.Namespace, Name: owner.Name, UID: owner.UID}
	switch {
	case workload.IsEvicted(after) && !workload.IsEvicted(before):
		evicted := meta.FindStatusCondition(after.Status.Conditions, kueue.WorkloadEvicted)
		t.tell(job, corev1.EventTypeWarning, "Evicted", fmt.Sprintf("%s: %s", evicted.Reason, evicted.Message))
	case workload.IsAdmitted(after) && workload.IsAdmitted(before) && resizedAnew(before, after) != nil:
		resized := resizedAnew(before, after)
		t.tell(job, corev1.EventTypeNormal, resized.Reason, resized.Message)
	case workload.IsAdmitted(after) && !workload.IsAdmitted(before):
		t.tell(job, corev1.EventTypeNormal, kueue.WorkloadAdmittedReason, "Admitted by ClusterQueue "+string(after.Status.Admission.ClusterQueue))
	case workload.HoldsQuota(after) && !workload.HoldsQuota(before):
		t.tell(job, corev1.EventTypeNormal, kueue.WorkloadQuotaReservedReason,
			fmt.Sprintf("Quota reserved in ClusterQueue %s; admission checks are not ready yet", after.Status.Admission.ClusterQueue))
	}
}

// resizedAnew is the condition of a change of size between the two, nil if there was none.
func resizedAnew(before, after *kueue.Workload) *metav1.Condition {
	was, is := meta.FindStatusCondition(before.Status.Conditions, muster.ResizedCondition), meta.FindStatusCondition(after.Status.Conditions, muster.ResizedCondition)
	if is == nil || was != nil && was.Message == is.Message && was.LastTransitionTime.Equal(&is.LastTransitionTime) {
		return nil
	}
	return is
}

func (t *teller) tell(job *corev1.ObjectReference, kind, reason, message string) {
	t.recorder.Eventf(job, nil, kind, reason, eventAction, "%s", workload.Cut(message, eventMessageBytes))
}
