package admission

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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

// teller tells people what was decided about their job: on the job, which they know. A nil
// one tells nothing.
type teller struct{ recorder *boundedRecorder }

// changed tells what a written status changed that people want to hear of.
func (t *teller) changed(before, after *kueue.Workload) {
	owner := metav1.GetControllerOf(after)
	if t == nil || owner == nil {
		return
	}
	job := &corev1.ObjectReference{APIVersion: owner.APIVersion, Kind: owner.Kind, Namespace: after.Namespace, Name: owner.Name, UID: owner.UID}
	if c, ok := changeOf(before, after); ok && !admittedAtOnce(before, c) {
		t.tell(job, whence(before), c.kind, c.reason, c.message)
	}
}

// whence is the Workload as it was before the change that is told. Each change is another event by it: the recorder makes one
// of those whose messages alone differ, and goes on telling the first, so that a job would be evicted for what it was evicted for before.
func whence(before *kueue.Workload) *corev1.ObjectReference {
	return &corev1.ObjectReference{
		APIVersion: kueue.GroupVersion.String(), Kind: "Workload",
		Namespace: before.Namespace, Name: before.Name, UID: before.UID, ResourceVersion: before.ResourceVersion,
	}
}

// admittedAtOnce reports whether the change is the admission of a Workload of which nothing was ever said. Nobody was told that
// its job waits, so nobody waits to hear that it does no longer; that it runs its own status says.
func admittedAtOnce(before *kueue.Workload, c change) bool {
	return c.reason == kueue.WorkloadAdmittedReason && meta.FindStatusCondition(before.Status.Conditions, kueue.WorkloadQuotaReserved) == nil
}

// change is what a written status changed.
type change struct{ kind, reason, message string }

// changeOf is what people want to hear of a written status, if there is anything.
func changeOf(before, after *kueue.Workload) (_ change, ok bool) {
	switch {
	case workload.IsEvicted(after) && !workload.IsEvicted(before):
		evicted := meta.FindStatusCondition(after.Status.Conditions, kueue.WorkloadEvicted)
		return change{corev1.EventTypeWarning, "Evicted", fmt.Sprintf("%s: %s", evicted.Reason, evicted.Message)}, true
	case workload.IsAdmitted(after) && workload.IsAdmitted(before) && resizedAnew(before, after) != nil:
		resized := resizedAnew(before, after)
		return change{corev1.EventTypeNormal, resized.Reason, resized.Message}, true
	case workload.IsAdmitted(after) && !workload.IsAdmitted(before):
		return change{corev1.EventTypeNormal, kueue.WorkloadAdmittedReason, "Admitted by ClusterQueue " + string(after.Status.Admission.ClusterQueue)}, true
	case workload.HoldsQuota(after) && !workload.HoldsQuota(before):
		return change{corev1.EventTypeNormal, kueue.WorkloadQuotaReservedReason,
			fmt.Sprintf("Quota reserved in ClusterQueue %s; admission checks are not ready yet", after.Status.Admission.ClusterQueue)}, true
	}
	return change{}, false
}

// resizedAnew is the condition of a change of size between the two, nil if there was none.
func resizedAnew(before, after *kueue.Workload) *metav1.Condition {
	was, is := meta.FindStatusCondition(before.Status.Conditions, muster.ResizedCondition), meta.FindStatusCondition(after.Status.Conditions, muster.ResizedCondition)
	if is == nil || was != nil && was.Message == is.Message && was.LastTransitionTime.Equal(&is.LastTransitionTime) {
		return nil
	}
	return is
}

// tell tells it now or never: the Workload's conditions say it too, and told late it would seem to have come about late.
func (t *teller) tell(job, related *corev1.ObjectReference, kind, reason, message string) {
	t.recorder.tellOrDrop(job, related, kind, reason, eventAction, "%s", workload.Cut(message, eventMessageBytes))
}
