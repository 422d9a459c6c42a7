package trainingjob

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	breezeml "github.com/musterhq/muster/api/breezeml/v1"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/replicas"
)

// setCreated sets the condition Created when the job is first observed.
func (l *planner) setCreated() {
	if condition(l.job, breezeml.JobCreated) != nil {
		return
	}
	l.setCondition(breezeml.JobCreated, true, breezeml.CreatedReason, l.message(breezeml.CreatedMessage))
	if p := l.job.Spec.ReplicaSpecs.Template.Spec.RestartPolicy; p != "" && p != podRestartPolicy(l.job) {
		l.addEvent(jobs.Warning(breezeml.TemplateRestartPolicyReason, fmt.Sprintf(
			"The restart policy %s in the pod template is ignored: spec.replicaSpecs sets %s", p, restartPolicyOf(l.job, latticeOf(l.job)))))
	}
}

// message returns a message with the name of the job.
func (l *planner) message(message string) string { return fmt.Sprintf(message, l.job.Name) }

// mustStop reports whether the job has been running and may not run any more.
func (l *planner) mustStop() bool {
	return l.job.Status.Stage == breezeml.StageRunning && (mistakeOf(l.job) != "" || suspended(l.job) || l.granted() == 0)
}

// advance moves a job that has not ended to the stage and size that it should have.
func (l *planner) advance() {
	s := &l.job.Status
	before := *s
	if mistake := mistakeOf(l.job); mistake != "" {
		if s.Stage != breezeml.StageWrongConfiguration {
			l.addEvent(jobs.Warning(breezeml.WrongConfigurationReason, mistake))
		}
		l.setStage(breezeml.StageWrongConfiguration, 0)
		s.CooldownTime, s.ExecStatus.StartTime = nil, nil // once corrected, the job is treated as new
		return
	}
	switch s.Stage {
	case breezeml.StageNone:
		l.enqueue(l.job.CreationTimestamp)
		s.SubmitTime = s.QueuedTime
	case breezeml.StageWrongConfiguration: // corrected: treated as new
		l.enqueue(l.now)
		s.SubmitTime = s.QueuedTime
	case breezeml.StageRequeueCooldown:
		if until := ptr.Deref(s.CooldownTime, metav1.Time{}).Time; !suspended(l.job) && l.seen.Now.Before(until) {
			l.plan.DueBy(until)
			return
		}
		l.enqueue(l.now)
	}
	switch was := isTrue(l.job, breezeml.JobSuspended); {
	case suspended(l.job):
		if !was {
			l.setCondition(breezeml.JobSuspended, true, breezeml.SuspendedReason, l.message(breezeml.SuspendedMessage))
			l.addEvent(jobs.Normal(breezeml.SuspendedReason, l.message(breezeml.SuspendedMessage)))
		}
		l.setStage(breezeml.StageWaiting, 0)
		s.ExecStatus.StartTime = nil
		return
	case was:
		l.setCondition(breezeml.JobSuspended, false, breezeml.ResumedReason, l.message(breezeml.ResumedMessage))
		l.addEvent(jobs.Normal(breezeml.ResumedReason, l.message(breezeml.ResumedMessage)))
		l.enqueue(l.now)
	}
	l.followAdmission(before.Stage)
}

// enqueue makes the job wait for its first start, or for another one, behind the jobs that are already waiting.
func (l *planner) enqueue(since metav1.Time) {
	l.setStage(breezeml.StageWaiting, 0)
	l.job.Status.CooldownTime = nil
	l.job.Status.QueuedTime = since.DeepCopy()
}

// followAdmission makes the job run with what it was granted, or wait for it.
func (l *planner) followAdmission(before breezeml.Stage) {
	s := &l.job.Status
	switch size := l.granted(); {
	case size > 0:
		l.setStage(breezeml.StageRunning, size)
		if before != breezeml.StageRunning {
			s.LastExecTime = l.now.DeepCopy()
		}
		if s.ExecStatus.StartTime == nil {
			s.ExecStatus.StartTime = l.now.DeepCopy()
		}
	case l.seen.Admission.Deactivated:
		l.setStage(breezeml.StageCancelled, 0)
	default:
		l.setStage(breezeml.StageWaiting, 0)
	}
}

// granted returns with how many workers the job may run, 0 if it may not run. A user who lowers maxSize below what was
// granted gets the lower number. Once a worker has succeeded, the job is about to end and does not grow: new workers
// would repeat finished work.
func (l *planner) granted() int32 {
	most := sizesOf(l.job).most
	if s := &l.job.Status; s.Stage == breezeml.StageRunning && l.succeeded() > 0 {
		most = min(most, s.CurrentSize)
	}
	switch l.seen.Admission.Grant {
	case jobs.Unqueued:
		return most
	case jobs.Admitted:
		return min(most, l.seen.Admission.PodSets[worker].Count)
	}
	return 0
}

// succeeded counts the pods that have succeeded.
func (l *planner) succeeded() int32 {
	var n int32
	for _, pod := range l.pods {
		if pod.Status.Phase == corev1.PodSucceeded && !replicas.IsTerminating(pod) {
			n++
		}
	}
	return n
}

// setStage sets stage and size. It resets the requeue time, since the pods of a new size have not been pending yet.
func (l *planner) setStage(stage breezeml.Stage, size int32) {
	s := &l.job.Status
	if s.Stage == stage && s.CurrentSize == size {
		return
	}
	if s.Stage == breezeml.StageRunning && stage == breezeml.StageRunning {
		l.addEvent(jobs.Normal(breezeml.ResizedReason, fmt.Sprintf("The job continues with %d workers instead of %d", size, s.CurrentSize)))
	}
	s.Stage, s.CurrentSize, s.RequeueTime = stage, size, nil
}

// deadline returns when the job must have ended, zero for never.
func (l *planner) deadline() time.Time {
	started, seconds := l.job.Status.ExecStatus.StartTime, l.job.Spec.RunPolicy.ActiveDeadlineSeconds
	if started == nil || seconds == nil || *seconds > int64(time.Duration(1<<62)/time.Second) {
		return time.Time{}
	}
	return started.Add(time.Duration(*seconds) * time.Second)
}
