package jobs

import (
	"fmt"
	"time"

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
)

// outOfSyncMessage is of the condition Finished of a Workload that does not describe
// the job that names it.
const outOfSyncMessage = "The prebuilt workload is out of sync with its user job"

// prebuiltName is the Workload that somebody else made for the job, "" if it gets one
// of its own.
func prebuiltName(job client.Object) string { return job.GetLabels()[kueue.PrebuiltWorkloadLabel] }

// prebuiltIndex finds the jobs that name a Workload, however many jobs there are: every Workload without an owner is looked up.
const prebuiltIndex = "muster.dev/prebuilt-workload"

func prebuiltNames(job client.Object) []string {
	if name := prebuiltName(job); name != "" {
		return []string{name}
	}
	return nil
}

// takePrebuilt makes the Workload that the job names its own, and says what is in the
// way of that. found is nil where there is none of the name. A Workload that asks for
// other pods than the job is finished, so that nobody is admitted by it.
func takePrebuilt(job client.Object, kind schema.GroupVersionKind, found *kueue.Workload, described Description, queue string, now time.Time) ([]Write, []Event) {
	name := prebuiltName(job)
	switch {
	case found == nil:
		return nil, []Event{Obstacle(prebuiltMissing, fmt.Sprintf(
			"The job waits: the Workload %s, which its label %s names, does not exist", name, kueue.PrebuiltWorkloadLabel))}
	case metav1.GetControllerOf(found) != nil && !metav1.IsControlledBy(found, job):
		return nil, []Event{Obstacle(prebuiltTaken, fmt.Sprintf(
			"The job waits: the Workload %s, which its label %s names, belongs to %s %s", name, kueue.PrebuiltWorkloadLabel,
			metav1.GetControllerOf(found).Kind, metav1.GetControllerOf(found).Name))}
	case !asksTheSame(found.Spec.PodSets, described.PodSets) && !(workload.HoldsQuota(found) && metav1.IsControlledBy(found, job)):
		// One that is the job's own was compared before, and what its admission added to the job is no difference.
		return outOfSync(found, now)
	case !metav1.IsControlledBy(found, job):
		return []Write{Change(found, adopted(job, kind, found, queue))}, nil
	}
	return nil, nil
}

func outOfSync(found *kueue.Workload, now time.Time) ([]Write, []Event) {
	told := []Event{Obstacle(prebuiltOutOfSync, fmt.Sprintf(
		"The job waits: the Workload %s, which its label %s names, asks for other pods than the job", found.Name, kueue.PrebuiltWorkloadLabel))}
	if workload.IsFinished(found) {
		return nil, told
	}
	over := found.DeepCopy()
	finish(over, kueue.WorkloadFinishedReasonOutOfSync, outOfSyncMessage, now)
	return []Write{ChangeStatus(found, over)}, told
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
