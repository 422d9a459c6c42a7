package workloads

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/jobs/write"
	"github.com/musterhq/muster/internal/podspec"
	"github.com/musterhq/muster/internal/pointers"
	"github.com/musterhq/muster/internal/workload"
)

// Reasons of the events about a Workload that someone else made for a job.
const (
	prebuiltMissing   = "PrebuiltWorkloadNotFound"
	prebuiltTaken     = "PrebuiltWorkloadTaken"
	prebuiltOutOfSync = "PrebuiltWorkloadOutOfSync"
	prebuiltFinished  = "PrebuiltWorkloadFinished"
)

// outOfSyncMessage is the message of the condition Finished on a Workload that does not match the job that names it.
const outOfSyncMessage = "The prebuilt workload is out of sync with its user job"

// takePrebuilt makes the job the controller of the Workload that it names, or returns an event that says what prevents
// that. found is nil if the Workload does not exist. A Workload that asks for other pods than the job is finished, so
// that the job is never admitted with it.
func (j Job) takePrebuilt(found *kueue.Workload, described jobs.Description, queue string,
	now time.Time) ([]write.Write, []write.Event) {
	name := jobs.PrebuiltName(j.Object)
	switch {
	case found == nil:
		return nil, waitsFor(prebuiltMissing, name, "does not exist")
	case metav1.GetControllerOf(found) != nil && !j.Controls(found):
		owner := metav1.GetControllerOf(found)
		return nil, waitsFor(prebuiltTaken, name, "belongs to "+owner.Kind+" "+owner.Name)
	case workload.IsFinished(found):
		return nil, finishedEvents(j.Object, found)
	case !asksTheSame(found.Spec.PodSets, described.PodSets) && !(workload.HoldsQuota(found) && j.Controls(found)):
		// A Workload that the job already controls was compared before; differences are what its admission added to the job.
		return outOfSync(found, now)
	case !j.Controls(found):
		return []write.Write{write.Change(found, adopted(j.Object, j.Kind, found, queue))}, nil
	}
	return nil, nil
}

// withJobTemplates returns the Workload with the job's own pod templates, except for the requests and placement
// constraints of the Workload, since a Workload made by hand has little more than requests and placement constraints.
// It returns nil for nil.
func withJobTemplates(w *kueue.Workload, podSets []kueue.PodSet) *kueue.Workload {
	if w == nil {
		return nil
	}
	out := *w
	out.Annotations = nil // the job must not trust a digest that someone else recorded
	out.Spec.PodSets = slices.Clone(w.Spec.PodSets)
	for podSet := range pointers.To(out.Spec.PodSets) {
		if own := slices.IndexFunc(podSets, func(ps kueue.PodSet) bool { return ps.Name == podSet.Name }); own >= 0 {
			granted := podspec.Needs(&podSet.Template.Spec)
			podSets[own].Template.DeepCopyInto(&podSet.Template)
			podspec.SetNeeds(&podSet.Template.Spec, granted)
		}
	}
	return &out
}

func outOfSync(found *kueue.Workload, now time.Time) ([]write.Write, []write.Event) {
	finished := found.DeepCopy()
	Finish(finished, kueue.WorkloadFinishedReasonOutOfSync, outOfSyncMessage, now)
	return []write.Write{write.ChangeStatus(found, finished)}, outOfSyncEvents(found)
}

// waitsFor returns the event that the job waits for the Workload that it names.
func waitsFor(reason, name, why string) []write.Event {
	return []write.Event{write.Obstacle(reason, fmt.Sprintf(
		"The job waits: the Workload %s, which its label %s names, %s", name, kueue.PrebuiltWorkloadLabel, why))}
}

// outOfSyncEvents returns the event that the Workload asks for other pods than the job.
func outOfSyncEvents(found *kueue.Workload) []write.Event {
	return waitsFor(prebuiltOutOfSync, found.Name, "asks for other pods than the job")
}

// finishedEvents returns an event that says why the job cannot be admitted with the finished Workload, unless that
// ended with the job itself. What the Workload asked for cannot be compared: the cache drops it.
func finishedEvents(job client.Object, found *kueue.Workload) []write.Event {
	finished := meta.FindStatusCondition(found.Status.Conditions, kueue.WorkloadFinished)
	switch {
	case finished.Reason == kueue.WorkloadFinishedReasonOutOfSync:
		return outOfSyncEvents(found)
	case metav1.IsControlledBy(found, job):
		return nil
	}
	return waitsFor(prebuiltFinished, found.Name, "is finished")
}

// adopted returns the Workload with the job as its controller.
func adopted(job client.Object, kind schema.GroupVersionKind, found *kueue.Workload, queue string) *kueue.Workload {
	out := found.DeepCopy()
	out.OwnerReferences = append(out.OwnerReferences, *metav1.NewControllerRef(job, kind))
	out.Finalizers = append(out.Finalizers, kueue.ResourceInUseFinalizer)
	metav1.SetMetaDataLabel(&out.ObjectMeta, kueue.JobUIDLabel, string(job.GetUID()))
	out.Spec.QueueName = cmp.Or(out.Spec.QueueName, kueue.LocalQueueName(queue))
	return out
}
