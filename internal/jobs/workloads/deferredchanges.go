package workloads

import (
	"fmt"
	"strconv"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/internal/jobs/write"
	"github.com/musterhq/muster/internal/workload"
)

const (
	// queueChangesLaterReason is the reason of the event on a job that names another queue than the one whose quota it
	// holds.
	queueChangesLaterReason = "QueueChangesLater"
	// labelsCountLaterReason is the reason of the event on a job whose labels ask for something else than its quota was
	// given for.
	labelsCountLaterReason = "LabelsCountLater"
)

// deferredChanges returns events for a job that holds quota and has been changed to ask for something else: the change
// takes effect only when the job is queued again, since held quota is never changed.
func deferredChanges(job client.Object, queue string, own *kueue.Workload, asked request) []write.Event {
	if !keepsQuota(own) {
		return nil
	}
	var events []write.Event
	if was := string(own.Spec.QueueName); queue != "" && was != queue {
		events = append(events, write.Obstacle(queueChangesLaterReason, fmt.Sprintf(
			"The job stays in queue %s, whose quota it holds, and moves to queue %s when it is queued again. To move it at once, deactivate its Workload %s and activate it again",
			was, queue, own.Name)))
	}
	if labels := deferredLabels(job, own, asked); len(labels) > 0 {
		events = append(events, write.Obstacle(labelsCountLaterReason, fmt.Sprintf(
			"The job keeps the quota that it was admitted with: the change of %s takes effect when it is queued again. To apply it at once, deactivate its Workload %s and activate it again",
			strings.Join(labels, " and "), own.Name)))
	}
	return events
}

// deferredWorkload returns an event for a job that follows this Workload, for its quota, though its label names another
// one, or none.
func deferredWorkload(followed *kueue.Workload) []write.Event {
	if !keepsQuota(followed) {
		return nil
	}
	return []write.Event{write.Obstacle(labelsCountLaterReason, fmt.Sprintf(
		"The job keeps the quota of Workload %s: the change of %s takes effect when it is queued again. To apply it at once, deactivate that Workload and activate it again",
		followed.Name, kueue.PrebuiltWorkloadLabel))}
}

// keepsQuota reports whether the Workload, nil for none, holds quota and does not give it up.
func keepsQuota(w *kueue.Workload) bool {
	return w != nil && workload.HoldsQuota(w) && !workload.IsFinished(w) && !workload.IsEvicted(w) &&
		w.DeletionTimestamp.IsZero()
}

// deferredLabels returns the labels whose change has no effect yet. Replacing one WorkloadPriorityClass by another
// takes effect at once, and removing the time limit never does, so neither is listed.
func deferredLabels(job client.Object, own *kueue.Workload, asked request) (labels []string) {
	class, ranked := job.GetLabels()[kueue.WorkloadPriorityClassLabel],
		own.Spec.PriorityClassSource == kueue.WorkloadPriorityClassSource
	if (class != "") != ranked {
		labels = append(labels, kueue.WorkloadPriorityClassLabel)
	}
	given, wanted := own.Spec.MaximumExecutionTimeSeconds, asked.maximumExecutionTimeSeconds
	if wanted != nil && job.GetLabels()[kueue.MaxExecTimeSecondsLabel] == strconv.Itoa(int(*wanted)) &&
		(given == nil || *given != *wanted) {
		labels = append(labels, kueue.MaxExecTimeSecondsLabel)
	}
	return labels
}
