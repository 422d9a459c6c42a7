package trainingjob

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	breezeml "github.com/musterhq/muster/api/breezeml/v1"
	"github.com/musterhq/muster/api/muster"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/jobs/write"
	"github.com/musterhq/muster/internal/pointers"
	"github.com/musterhq/muster/internal/replicas"
	"github.com/musterhq/muster/internal/workload"
)

// reporter brings the status of the job up to date, with the events of what changes in it.
type reporter struct {
	*view
	plan *jobs.Plan
}

// countWorkers counts the workers by state.
func (rep *reporter) countWorkers() {
	counts := breezeml.ReplicaStatus{Ready: new(int32)}
	for r := range pointers.To(rep.roster.Replicas) {
		switch r.Phase {
		case replicas.Running:
			counts.Active++
			if r.Ready { // a pod whose container ends again and again is running, and not ready
				*counts.Ready++
			}
		case replicas.Succeeded:
			counts.Succeeded++
		case replicas.Failed:
			counts.Failed++
		}
	}
	selector := rep.labels(0)
	delete(selector, breezeml.ReplicaIndexLabel)
	counts.Selector = labels.SelectorFromSet(selector).String()
	rep.job.Status.ExecStatus.ReplicaStatuses = map[string]breezeml.ReplicaStatus{breezeml.WorkerStatuses: counts}
}

// countLastWorkers counts the pods that end after the job. Pods that are deleted meanwhile stay counted if they had
// ended before.
func (rep *reporter) countLastWorkers() {
	before, known := rep.job.Status.ExecStatus.ReplicaStatuses[breezeml.WorkerStatuses]
	if !known {
		return
	}
	counts := breezeml.ReplicaStatus{Selector: before.Selector}
	for _, pod := range rep.pods {
		switch {
		case pod.Status.Phase == corev1.PodRunning:
			counts.Active++
		case replicas.IsTerminating(pod): // its deletion may have ended it
		case pod.Status.Phase == corev1.PodSucceeded:
			counts.Succeeded++
		case pod.Status.Phase == corev1.PodFailed:
			counts.Failed++
		}
	}
	counts.Succeeded, counts.Failed = max(counts.Succeeded, before.Succeeded), max(counts.Failed, before.Failed)
	rep.job.Status.ExecStatus.ReplicaStatuses = map[string]breezeml.ReplicaStatus{breezeml.WorkerStatuses: counts}
}

// setRunning sets one of the conditions Running and Restarting, and removes the second.
func (rep *reporter) setRunning(outcome *jobs.Outcome) {
	running := rep.roster.All(replicas.In(replicas.Running, replicas.Succeeded))
	some := rep.roster.First(replicas.In(replicas.Running)) != nil
	switch restarting, refused := isTrue(rep.job, breezeml.JobRestarting), rep.seen.RefusedObjects.Message(); {
	case outcome != nil:
		rep.dropCondition(breezeml.JobRestarting)
		rep.clear(breezeml.JobRunning, outcome.Reason(breezeml.SucceededReason, breezeml.FailedReason), outcome.Message)
	case rep.job.Status.Stage != breezeml.StageRunning:
		rep.dropCondition(breezeml.JobRestarting)
		rep.clear(breezeml.JobRunning, "TrainingJob"+string(rep.job.Status.Stage), rep.message(breezeml.StoppedMessage))
	case refused != "" && !some: // none of its workers runs, and this is why
		rep.dropCondition(breezeml.JobRestarting)
		rep.setCondition(breezeml.JobRunning, false, muster.RefusedReason, refused)
	case len(rep.restarting)+len(rep.waiting) > 0:
		rep.dropCondition(breezeml.JobRunning)
		rep.setCondition(breezeml.JobRestarting, true, breezeml.RestartingReason,
			rep.restartingMessage(slices.Concat(rep.restarting, rep.waiting)))
	case some && (running || !restarting):
		rep.dropCondition(breezeml.JobRestarting)
		rep.setCondition(breezeml.JobRunning, true, breezeml.RunningReason, rep.message(breezeml.RunningMessage))
	}
}

// clear sets a condition that is True to False.
func (rep *reporter) clear(kind breezeml.JobConditionType, reason, message string) {
	if isTrue(rep.job, kind) {
		rep.setCondition(kind, false, reason, message)
	}
}

// setCondition sets a condition and its times of last update and transition.
func (rep *reporter) setCondition(kind breezeml.JobConditionType, is bool, reason, message string) {
	message = workload.Cut(message, workload.ConditionMessageBytes)
	c := breezeml.JobCondition{Type: kind, Status: corev1.ConditionFalse, Reason: reason, Message: message,
		LastUpdateTime: rep.now, LastTransitionTime: rep.now}
	if is {
		c.Status = corev1.ConditionTrue
	}
	before := condition(rep.job, kind)
	if before == nil {
		rep.job.Status.ExecStatus.Conditions = append(rep.job.Status.ExecStatus.Conditions, c)
		return
	}
	if before.Status == c.Status {
		c.LastTransitionTime = before.LastTransitionTime
		if before.Reason == reason && before.Message == message {
			return
		}
	}
	*before = c
}

func (rep *reporter) dropCondition(kind breezeml.JobConditionType) {
	status := &rep.job.Status.ExecStatus
	status.Conditions = slices.DeleteFunc(slices.Clone(status.Conditions),
		func(c breezeml.JobCondition) bool { return c.Type == kind })
}

// message returns a message with the name of the job.
func (v *view) message(message string) string { return fmt.Sprintf(message, v.job.Name) }

func (rep *reporter) addEvent(e write.Event) { rep.plan.AddEvents(e) }

func condition(job *breezeml.TrainingJob, kind breezeml.JobConditionType) *breezeml.JobCondition {
	return pointers.First(job.Status.ExecStatus.Conditions,
		func(c *breezeml.JobCondition) bool { return c.Type == kind })
}

func isTrue(job *breezeml.TrainingJob, kind breezeml.JobConditionType) bool {
	c := condition(job, kind)
	return c != nil && c.Status == corev1.ConditionTrue
}
