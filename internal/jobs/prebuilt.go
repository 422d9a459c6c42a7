package jobs

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/workload"
)

// Reasons of the events about a Workload that somebody else made for a job.
const (
	prebuiltMissing   = "PrebuiltWorkloadNotFound"
	prebuiltTaken     = "PrebuiltWorkloadTaken"
	prebuiltOutOfSync = "PrebuiltWorkloadOutOfSync"
	prebuiltFinished  = "PrebuiltWorkloadFinished"
)

// outOfSyncMessage is of the condition Finished of a Workload that does not describe
// the job that names it.
const outOfSyncMessage = "The prebuilt workload is out of sync with its user job"

// prebuiltName is the Workload that somebody else made for the job, "" if it gets one
// of its own.
func prebuiltName(job client.Object) string { return job.GetLabels()[kueue.PrebuiltWorkloadLabel] }

// takePrebuilt makes the Workload that the job names its own, and says what is in the
// way of that. found is nil where there is none of the name. A Workload that asks for
// other pods than the job is finished, so that nobody is admitted by it.
func takePrebuilt(job client.Object, kind schema.GroupVersionKind, found *kueue.Workload, described Description, queue string, now time.Time) ([]Write, []Event) {
	name := prebuiltName(job)
	switch {
	case found == nil:
		return nil, []Event{Obstacle(prebuiltMissing, fmt.Sprintf(
			"The job waits: the Workload %s, which its label %s names, does not exist", name, kueue.PrebuiltWorkloadLabel))}
	case metav1.GetControllerOf(found) != nil && !isOf(found, job, kind):
		return nil, []Event{Obstacle(prebuiltTaken, fmt.Sprintf(
			"The job waits: the Workload %s, which its label %s names, belongs to %s %s", name, kueue.PrebuiltWorkloadLabel,
			metav1.GetControllerOf(found).Kind, metav1.GetControllerOf(found).Name))}
	case workload.IsFinished(found):
		return nil, toldFinished(job, found)
	case !asksTheSame(found.Spec.PodSets, described.PodSets) && !(workload.HoldsQuota(found) && isOf(found, job, kind)):
		// One that is the job's own was compared before, and what its admission added to the job is no difference.
		return outOfSync(found, now)
	case !isOf(found, job, kind):
		return []Write{Change(found, adopted(job, kind, found, queue))}, nil
	}
	return nil, nil
}

// inFull is the Workload with the job's own templates, but for what they cost and where they may run: who makes one by hand says
// no more than that. nil for nil.
func inFull(w *kueue.Workload, podSets []kueue.PodSet) *kueue.Workload {
	if w == nil {
		return nil
	}
	out := *w
	out.Annotations = nil // nor is what he notes on it for the job to believe
	out.Spec.PodSets = slices.Clone(w.Spec.PodSets)
	for i := range out.Spec.PodSets {
		said := &out.Spec.PodSets[i]
		if own := slices.IndexFunc(podSets, func(ps kueue.PodSet) bool { return ps.Name == said.Name }); own >= 0 {
			granted := needs(&said.Template.Spec)
			podSets[own].Template.DeepCopyInto(&said.Template)
			setNeeds(&said.Template.Spec, granted)
		}
	}
	return &out
}

func outOfSync(found *kueue.Workload, now time.Time) ([]Write, []Event) {
	over := found.DeepCopy()
	finish(over, kueue.WorkloadFinishedReasonOutOfSync, outOfSyncMessage, now)
	return []Write{ChangeStatus(found, over)}, []Event{toldOutOfSync(found)}
}

func toldOutOfSync(found *kueue.Workload) Event {
	return Obstacle(prebuiltOutOfSync, fmt.Sprintf(
		"The job waits: the Workload %s, which its label %s names, asks for other pods than the job", found.Name, kueue.PrebuiltWorkloadLabel))
}

// toldFinished tells the job why nobody will admit it by the Workload, if that did not end with the job itself. What it asked
// for the cache does not keep.
func toldFinished(job client.Object, found *kueue.Workload) []Event {
	switch {
	case meta.FindStatusCondition(found.Status.Conditions, kueue.WorkloadFinished).Reason == kueue.WorkloadFinishedReasonOutOfSync:
		return []Event{toldOutOfSync(found)}
	case metav1.IsControlledBy(found, job):
		return nil
	}
	return []Event{Obstacle(prebuiltFinished, fmt.Sprintf(
		"The job waits: the Workload %s, which its label %s names, is finished", found.Name, kueue.PrebuiltWorkloadLabel))}
}

// adopted is the Workload as the job's own.
func adopted(job client.Object, kind schema.GroupVersionKind, found *kueue.Workload, queue string) *kueue.Workload {
	out := found.DeepCopy()
	out.OwnerReferences = append(out.OwnerReferences, *metav1.NewControllerRef(job, kind))
	out.Finalizers = append(out.Finalizers, kueue.ResourceInUseFinalizer)
	if out.Labels == nil {
		out.Labels = map[string]string{}
	}
	out.Labels[kueue.JobUIDLabel] = string(job.GetUID())
	if out.Spec.QueueName == "" {
		out.Spec.QueueName = kueue.LocalQueueName(queue)
	}
	return out
}
