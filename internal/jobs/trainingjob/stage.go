package trainingjob

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	breezeml "github.com/musterhq/muster/api/breezeml/v1"
	"github.com/musterhq/muster/internal/jobs/write"
)

// setCreated sets the condition Created when the job is first observed.
func (rep *reporter) setCreated() {
	if condition(rep.job, breezeml.JobCreated) != nil {
		return
	}
	rep.setCondition(breezeml.JobCreated, true, breezeml.CreatedReason, rep.message(breezeml.CreatedMessage))
	if policy := rep.job.Spec.ReplicaSpecs.Template.Spec.RestartPolicy; policy != "" &&
		policy != podRestartPolicy(rep.job) {
		rep.addEvent(write.Warning(breezeml.TemplateRestartPolicyReason, fmt.Sprintf(
			"The restart policy %s in the pod template is ignored: spec.replicaSpecs sets %s", policy,
			restartPolicyOf(rep.job, latticeOf(rep.job)))))
	}
	asked, used := rep.job.Spec.ReplicaSpecs.RestartPolicy, restartPolicyOf(rep.job, latticeOf(rep.job))
	if asked != "" && asked != used {
		rep.addEvent(write.Warning(breezeml.RestartPolicyReplacedReason, fmt.Sprintf(
			"The restart policy %s is replaced by %s: with injectLattice, a training that has succeeded would be run again, without end", asked, used)))
	}
}

// advance moves a job that has not ended to the stage and size that it should have.
func (rep *reporter) advance() {
	s := &rep.job.Status
	before := *s
	if mistake := mistakeOf(rep.job); mistake != "" {
		if s.Stage != breezeml.StageWrongConfiguration {
			rep.addEvent(write.Warning(breezeml.WrongConfigurationReason, mistake))
		}
		rep.setStage(breezeml.StageWrongConfiguration, 0)
		s.CooldownTime, s.ExecStatus.StartTime = nil, nil // once corrected, the job is treated as new
		return
	}
	switch s.Stage {
	case breezeml.StageNone:
		rep.enqueue(rep.job.CreationTimestamp)
		s.SubmitTime = s.QueuedTime
	case breezeml.StageWrongConfiguration: // corrected: treated as new
		rep.enqueue(rep.now)
		s.SubmitTime = s.QueuedTime
	case breezeml.StageRequeueCooldown:
		if until := ptr.Deref(s.CooldownTime, metav1.Time{}).Time; !suspended(rep.job) && rep.seen.Now.Before(until) {
			rep.plan.DueBy(until)
			return
		}
		rep.enqueue(rep.now)
	}
	switch was := isTrue(rep.job, breezeml.JobSuspended); {
	case suspended(rep.job):
		if !was {
			rep.setCondition(breezeml.JobSuspended, true, breezeml.SuspendedReason, rep.message(breezeml.SuspendedMessage))
			rep.addEvent(write.Normal(breezeml.SuspendedReason, rep.message(breezeml.SuspendedMessage)))
		}
		rep.setStage(breezeml.StageWaiting, 0)
		s.ExecStatus.StartTime = nil
		return
	case was:
		rep.setCondition(breezeml.JobSuspended, false, breezeml.ResumedReason, rep.message(breezeml.ResumedMessage))
		rep.addEvent(write.Normal(breezeml.ResumedReason, rep.message(breezeml.ResumedMessage)))
		rep.enqueue(rep.now)
	}
	rep.followAdmission(before.Stage)
}

// enqueue makes the job wait for its first start, or for another one, behind the jobs that are already waiting.
func (rep *reporter) enqueue(since metav1.Time) {
	rep.setStage(breezeml.StageWaiting, 0)
	rep.job.Status.CooldownTime, rep.job.Status.SizeLimit = nil, nil
	rep.job.Status.QueuedTime = since.DeepCopy()
}

// followAdmission makes the job run with its grant, or wait for one.
func (rep *reporter) followAdmission(before breezeml.Stage) {
	s := &rep.job.Status
	rep.reviewLimit()
	switch size := rep.granted(); {
	case size > 0:
		rep.setStage(breezeml.StageRunning, size)
		if before != breezeml.StageRunning {
			s.LastExecTime = rep.now.DeepCopy()
		}
		if s.ExecStatus.StartTime == nil {
			s.ExecStatus.StartTime = rep.now.DeepCopy()
		}
	case rep.seen.Admission.Deactivated:
		rep.setStage(breezeml.StageCancelled, 0)
	default:
		rep.setStage(breezeml.StageWaiting, 0)
	}
}

// setStage sets stage and size. It resets the requeue time, since the pods of a new size have not been pending yet.
func (rep *reporter) setStage(stage breezeml.Stage, size int32) {
	s := &rep.job.Status
	if s.Stage == stage && s.CurrentSize == size {
		return
	}
	if s.Stage == breezeml.StageRunning && stage == breezeml.StageRunning {
		rep.addEvent(write.Normal(breezeml.ResizedReason,
			fmt.Sprintf("The job continues with %d workers instead of %d", size, s.CurrentSize)))
	}
	s.Stage, s.CurrentSize, s.RequeueTime = stage, size, nil
}
