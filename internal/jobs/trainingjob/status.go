package trainingjob

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/labels"

	breezeml "github.com/musterhq/muster/api/breezeml/v1"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/replicas"
)

// report fills in the status. Once the job has ended, conditions and counts stay as they are.
func (l *planner) report(over *jobs.Outcome) {
	before := &l.seen.Job.Status
	s := &l.job.Status
	if outcome(l.seen.Job) == nil {
		l.setRunning(over)
		l.countWorkers()
	}
	if equality.Semantic.DeepEqual(before, s) {
		return
	}
	l.plan.Status = l.job
	l.plan.StatusCanWait = !l.plan.StatusFirst && sameButCounts(before, s)
	s.ExecStatus.LastReconcileTime = l.now.DeepCopy()
}

// sameButCounts reports whether the statuses differ only in what can be derived from the pods.
func sameButCounts(a, b *breezeml.TrainingJobStatus) bool {
	one, other := a.DeepCopy(), b.DeepCopy()
	for _, s := range []*breezeml.TrainingJobStatus{one, other} {
		s.ExecStatus.ReplicaStatuses, s.RequeueTime = nil, nil
	}
	return equality.Semantic.DeepEqual(one, other)
}

// countWorkers counts the workers by state.
func (l *planner) countWorkers() {
	var counts breezeml.ReplicaStatus
	for i := range l.roster.Replicas {
		switch l.roster.Replicas[i].Phase {
		case replicas.Running:
			counts.Active++
		case replicas.Succeeded:
			counts.Succeeded++
		case replicas.Failed:
			counts.Failed++
		}
	}
	selector := l.labels(0)
	delete(selector, breezeml.ReplicaIndexLabel)
	counts.Selector = labels.SelectorFromSet(selector).String()
	l.job.Status.ExecStatus.ReplicaStatuses = map[string]breezeml.ReplicaStatus{breezeml.WorkerStatuses: counts}
}

// setRunning sets the condition Running or Restarting and removes the other one.
func (l *planner) setRunning(over *jobs.Outcome) {
	running := l.roster.All(func(r *replicas.Replica) bool { return r.Phase == replicas.Running || r.Phase == replicas.Succeeded })
	some := false
	for i := range l.roster.Replicas {
		some = some || l.roster.Replicas[i].Phase == replicas.Running
	}
	switch restarting := isTrue(l.job, breezeml.JobRestarting); {
	case over != nil:
		reason := breezeml.SucceededReason
		if !over.Succeeded {
			reason = breezeml.FailedReason
		}
		l.dropCondition(breezeml.JobRestarting)
		l.clear(breezeml.JobRunning, reason, over.Message)
	case l.job.Status.Stage != breezeml.StageRunning:
		l.dropCondition(breezeml.JobRestarting)
		l.clear(breezeml.JobRunning, "TrainingJob"+string(l.job.Status.Stage), l.message(breezeml.StoppedMessage))
	case len(l.restarting) > 0:
		l.dropCondition(breezeml.JobRunning)
		l.setCondition(breezeml.JobRestarting, true, breezeml.RestartingReason,
			fmt.Sprintf(breezeml.RestartingMessage, l.job.Name, len(l.restarting), failureOf(l.restarting[0].Pod)))
	case some && (running || !restarting):
		l.dropCondition(breezeml.JobRestarting)
		l.setCondition(breezeml.JobRunning, true, breezeml.RunningReason, l.message(breezeml.RunningMessage))
	}
}

// clear sets a condition that is True to False.
func (l *planner) clear(kind breezeml.JobConditionType, reason, message string) {
	if isTrue(l.job, kind) {
		l.setCondition(kind, false, reason, message)
	}
}

// setCondition sets a condition and its times of last update and transition.
func (l *planner) setCondition(kind breezeml.JobConditionType, is bool, reason, message string) {
	c := breezeml.JobCondition{Type: kind, Status: corev1.ConditionFalse, Reason: reason, Message: message, LastUpdateTime: l.now, LastTransitionTime: l.now}
	if is {
		c.Status = corev1.ConditionTrue
	}
	before := condition(l.job, kind)
	if before == nil {
		l.job.Status.ExecStatus.Conditions = append(l.job.Status.ExecStatus.Conditions, c)
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

func (l *planner) dropCondition(kind breezeml.JobConditionType) {
	list := &l.job.Status.ExecStatus.Conditions
	for i := range *list {
		if (*list)[i].Type == kind {
			*list = append((*list)[:i:i], (*list)[i+1:]...)
			return
		}
	}
}

func condition(job *breezeml.TrainingJob, kind breezeml.JobConditionType) *breezeml.JobCondition {
	for i := range job.Status.ExecStatus.Conditions {
		if c := &job.Status.ExecStatus.Conditions[i]; c.Type == kind {
			return c
		}
	}
	return nil
}

func isTrue(job *breezeml.TrainingJob, kind breezeml.JobConditionType) bool {
	c := condition(job, kind)
	return c != nil && c.Status == corev1.ConditionTrue
}

// outcome returns how the job has ended, nil if it has not.
func outcome(job *breezeml.TrainingJob) *jobs.Outcome {
	for _, kind := range []breezeml.JobConditionType{breezeml.JobSucceeded, breezeml.JobFailed} {
		if isTrue(job, kind) {
			return &jobs.Outcome{Succeeded: kind == breezeml.JobSucceeded, Message: condition(job, kind).Message}
		}
	}
	return nil
}
