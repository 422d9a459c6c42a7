package trainingjob

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/labels"

	breezeml "github.com/musterhq/muster/api/breezeml/v1"
	"github.com/musterhq/muster/api/muster"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/replicas"
	"github.com/musterhq/muster/internal/workload"
)

// report fills in the status. Once the job has ended, conditions stay as they are, and counts once all pods have ended.
func (p *planner) report(over *jobs.Outcome) {
	before := &p.seen.Job.Status
	s := &p.job.Status
	if outcome(p.seen.Job) == nil {
		p.setRunning(over)
		p.countWorkers()
	} else {
		p.countLastWorkers()
	}
	if equality.Semantic.DeepEqual(before, s) {
		return
	}
	p.plan.Status = p.job
	p.plan.StatusCanWait = !p.plan.StatusFirst && sameButCounts(before, s)
	s.ExecStatus.LastReconcileTime = p.now.DeepCopy()
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
func (p *planner) countWorkers() {
	counts := breezeml.ReplicaStatus{Ready: new(int32)}
	for i := range p.roster.Replicas {
		switch r := &p.roster.Replicas[i]; r.Phase {
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
	selector := p.labels(0)
	delete(selector, breezeml.ReplicaIndexLabel)
	counts.Selector = labels.SelectorFromSet(selector).String()
	p.job.Status.ExecStatus.ReplicaStatuses = map[string]breezeml.ReplicaStatus{breezeml.WorkerStatuses: counts}
}

// countLastWorkers counts the pods that end after the job. Pods that are deleted meanwhile stay counted if they had ended
// before.
func (p *planner) countLastWorkers() {
	before, known := p.job.Status.ExecStatus.ReplicaStatuses[breezeml.WorkerStatuses]
	if !known {
		return
	}
	counts := breezeml.ReplicaStatus{Selector: before.Selector}
	for _, pod := range p.pods {
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
	p.job.Status.ExecStatus.ReplicaStatuses = map[string]breezeml.ReplicaStatus{breezeml.WorkerStatuses: counts}
}

// setRunning sets the condition Running or Restarting and removes the other one.
func (p *planner) setRunning(over *jobs.Outcome) {
	running := p.roster.All(func(r *replicas.Replica) bool { return r.Phase == replicas.Running || r.Phase == replicas.Succeeded })
	some := p.roster.First(func(r *replicas.Replica) bool { return r.Phase == replicas.Running }) != nil
	switch restarting, refused := isTrue(p.job, breezeml.JobRestarting), p.seen.RefusedObjects.Message(); {
	case over != nil:
		reason := breezeml.SucceededReason
		if !over.Succeeded {
			reason = breezeml.FailedReason
		}
		p.dropCondition(breezeml.JobRestarting)
		p.clear(breezeml.JobRunning, reason, over.Message)
	case p.job.Status.Stage != breezeml.StageRunning:
		p.dropCondition(breezeml.JobRestarting)
		p.clear(breezeml.JobRunning, "TrainingJob"+string(p.job.Status.Stage), p.message(breezeml.StoppedMessage))
	case refused != "" && !some: // none of its workers runs, and this is why
		p.dropCondition(breezeml.JobRestarting)
		p.setCondition(breezeml.JobRunning, false, muster.RefusedReason, refused)
	case len(p.restarting)+len(p.waiting) > 0:
		p.dropCondition(breezeml.JobRunning)
		p.setCondition(breezeml.JobRestarting, true, breezeml.RestartingReason, p.restartingMessage(slices.Concat(p.restarting, p.waiting)))
	case some && (running || !restarting):
		p.dropCondition(breezeml.JobRestarting)
		p.setCondition(breezeml.JobRunning, true, breezeml.RunningReason, p.message(breezeml.RunningMessage))
	}
}

// clear sets a condition that is True to False.
func (p *planner) clear(kind breezeml.JobConditionType, reason, message string) {
	if isTrue(p.job, kind) {
		p.setCondition(kind, false, reason, message)
	}
}

// setCondition sets a condition and its times of last update and transition.
func (p *planner) setCondition(kind breezeml.JobConditionType, is bool, reason, message string) {
	message = workload.Cut(message, workload.ConditionMessageBytes)
	c := breezeml.JobCondition{Type: kind, Status: corev1.ConditionFalse, Reason: reason, Message: message, LastUpdateTime: p.now, LastTransitionTime: p.now}
	if is {
		c.Status = corev1.ConditionTrue
	}
	before := condition(p.job, kind)
	if before == nil {
		p.job.Status.ExecStatus.Conditions = append(p.job.Status.ExecStatus.Conditions, c)
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

func (p *planner) dropCondition(kind breezeml.JobConditionType) {
	list := &p.job.Status.ExecStatus.Conditions
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
