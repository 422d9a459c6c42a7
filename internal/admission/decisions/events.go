package decisions

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/api/muster"
	"github.com/musterhq/muster/internal/engine/reason"
	"github.com/musterhq/muster/internal/workload"
)

const (
	// EventAction is the action of every event recorded here.
	EventAction = "Deciding"
	// EventMessageBytes is the API's limit for an event's note.
	EventMessageBytes = 1024
)

// JobEvents records decisions as events on the job, which users know, rather than on its Workload. A nil value records
// nothing.
type JobEvents struct{ Recorder *boundedRecorder }

// StatusChanged records what a status write changed, if that is of interest to users.
func (j *JobEvents) StatusChanged(before, after *kueue.Workload) {
	if j == nil {
		return
	}
	owner := metav1.GetControllerOf(after)
	if near := newWarning(before, after); near != nil {
		j.limitNear(before, owner, near)
	}
	if owner == nil {
		return
	}
	if c, ok := changeOf(before, after); ok && !admittedWithoutWaiting(before, c) {
		j.record(jobRef(after, owner), versionRef(before), c.Kind, c.Reason, c.Message)
	}
}

// Waits records why the Workload waits. The event waits for the write budget if need be: the reason lasts, and is
// recorded once.
func (j *JobEvents) Waits(w *kueue.Workload, why reason.Reason) {
	owner := metav1.GetControllerOf(w)
	if j == nil || owner == nil {
		return
	}
	j.Recorder.Eventf(jobRef(w, owner), versionRef(w), corev1.EventTypeWarning, string(why.Code), EventAction, "%s",
		workload.Cut(why.Message(), EventMessageBytes))
}

// jobRef returns a reference to the job that owns the Workload.
func jobRef(w *kueue.Workload, owner *metav1.OwnerReference) *corev1.ObjectReference {
	return &corev1.ObjectReference{APIVersion: owner.APIVersion, Kind: owner.Kind, Namespace: w.Namespace,
		Name: owner.Name, UID: owner.UID}
}

// versionRef returns a reference to the Workload at the version before the change, to be the event's related object. It
// keeps changes apart: the recorder merges events that differ in nothing but the message and repeats the first one's
// message, so that a second eviction would be reported with the reason of the first.
func versionRef(before *kueue.Workload) *corev1.ObjectReference {
	return &corev1.ObjectReference{
		APIVersion: kueue.GroupVersion.String(), Kind: "Workload",
		Namespace: before.Namespace, Name: before.Name, UID: before.UID, ResourceVersion: before.ResourceVersion,
	}
}

// admittedWithoutWaiting reports whether the change is the admission of a Workload that was never reported to wait.
// This admission needs no event; the job's own status says that the job runs.
func admittedWithoutWaiting(before *kueue.Workload, c change) bool {
	return c.Reason == kueue.WorkloadAdmittedReason &&
		meta.FindStatusCondition(before.Status.Conditions, kueue.WorkloadQuotaReserved) == nil
}

// change is a status change that users want to know of.
type change struct{ Kind, Reason, Message string }

// changeOf returns the status change that users want to know of, if there is one.
func changeOf(before, after *kueue.Workload) (_ change, ok bool) {
	switch {
	case workload.IsEvicted(after) && !workload.IsEvicted(before):
		evicted := meta.FindStatusCondition(after.Status.Conditions, kueue.WorkloadEvicted)
		return change{corev1.EventTypeWarning, "Evicted", fmt.Sprintf("%s: %s", evicted.Reason, evicted.Message)}, true
	case workload.HoldsQuota(before) && workload.IsEvictedInBrief(after):
		return change{corev1.EventTypeWarning, "Evicted", workload.TooLargeMessage}, true
	case workload.IsAdmitted(after) && workload.IsAdmitted(before) && newResize(before, after) != nil:
		resized := newResize(before, after)
		return change{corev1.EventTypeNormal, resized.Reason, resized.Message}, true
	case workload.IsAdmitted(after) && !workload.IsAdmitted(before):
		return change{corev1.EventTypeNormal, kueue.WorkloadAdmittedReason,
			"Admitted by ClusterQueue " + string(after.Status.Admission.ClusterQueue)}, true
	case workload.HoldsQuota(after) && !workload.HoldsQuota(before):
		return change{corev1.EventTypeNormal, kueue.WorkloadQuotaReservedReason,
			fmt.Sprintf("Quota reserved in ClusterQueue %s; admission checks are not ready yet",
				after.Status.Admission.ClusterQueue)}, true
	}
	return change{}, false
}

// limitNear warns that the Workload soon reaches its time limit, by an event on the Workload and one on its job, if it
// has one. The warning waits for the write budget if need be: there is only one.
func (j *JobEvents) limitNear(before *kueue.Workload, owner *metav1.OwnerReference, near *metav1.Condition) {
	w := versionRef(before)
	about := []*corev1.ObjectReference{{APIVersion: w.APIVersion, Kind: w.Kind, Namespace: w.Namespace, Name: w.Name,
		UID: w.UID}}
	if owner != nil {
		about = append(about, jobRef(before, owner))
	}
	for _, object := range about {
		j.Recorder.Eventf(object, w, corev1.EventTypeWarning, near.Reason, EventAction, "%s",
			workload.Cut(near.Message, EventMessageBytes))
	}
}

// newWarning returns the condition by which the Workload was warned of its time limit between the two versions, nil if
// it was not.
func newWarning(before, after *kueue.Workload) *metav1.Condition {
	was := workload.IfTrue(before, muster.TimeLimitNearCondition)
	is := workload.IfTrue(after, muster.TimeLimitNearCondition)
	if is == nil || was != nil && was.Message == is.Message {
		return nil
	}
	return is
}

// newResize returns the condition of a resize between the two versions, nil if there was none.
func newResize(before, after *kueue.Workload) *metav1.Condition {
	was, is := meta.FindStatusCondition(before.Status.Conditions, muster.ResizedCondition),
		meta.FindStatusCondition(after.Status.Conditions, muster.ResizedCondition)
	if is == nil || was != nil && was.Message == is.Message && was.LastTransitionTime.Equal(&is.LastTransitionTime) {
		return nil
	}
	return is
}

// record records the event now or not at all: the Workload's conditions say the same, and a late event would make the
// Change look late.
func (j *JobEvents) record(job, related *corev1.ObjectReference, kind, reason, message string) {
	j.Recorder.recordOrDrop(j.Recorder.recording(job, related, kind, reason, EventAction, "%s",
		workload.Cut(message, EventMessageBytes)))
}
