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
func (p *planner) setCreated() {
	if condition(p.job, breezeml.JobCreated) != nil {
		return
	}
	p.setCondition(breezeml.JobCreated, true, breezeml.CreatedReason, p.message(breezeml.CreatedMessage))
	if policy := p.job.Spec.ReplicaSpecs.Template.Spec.RestartPolicy; policy != "" && policy != podRestartPolicy(p.job) {
		p.addEvent(jobs.Warning(breezeml.TemplateRestartPolicyReason, fmt.Sprintf(
			"The restart policy %s in the pod template is ignored: spec.replicaSpecs sets %s", policy, restartPolicyOf(p.job, latticeOf(p.job)))))
	}
	if said, is := p.job.Spec.ReplicaSpecs.RestartPolicy, restartPolicyOf(p.job, latticeOf(p.job)); said != "" && said != is {
		p.addEvent(jobs.Warning(breezeml.RestartPolicyReplacedReason, fmt.Sprintf(
			"The restart policy %s is replaced by %s: with injectLattice, a training that has succeeded would be run again, without end", said, is)))
	}
}

// message returns a message with the name of the job.
func (p *planner) message(message string) string { return fmt.Sprintf(message, p.job.Name) }

// mustStop reports whether the job has been running and may not run any more.
func (p *planner) mustStop() bool {
	return p.job.Status.Stage == breezeml.StageRunning && (mistakeOf(p.job) != "" || suspended(p.job) || p.granted() == 0)
}

// advance moves a job that has not ended to the stage and size that it should have.
func (p *planner) advance() {
	s := &p.job.Status
	before := *s
	if mistake := mistakeOf(p.job); mistake != "" {
		if s.Stage != breezeml.StageWrongConfiguration {
			p.addEvent(jobs.Warning(breezeml.WrongConfigurationReason, mistake))
		}
		p.setStage(breezeml.StageWrongConfiguration, 0)
		s.CooldownTime, s.ExecStatus.StartTime = nil, nil // once corrected, the job is treated as new
		return
	}
	switch s.Stage {
	case breezeml.StageNone:
		p.enqueue(p.job.CreationTimestamp)
		s.SubmitTime = s.QueuedTime
	case breezeml.StageWrongConfiguration: // corrected: treated as new
		p.enqueue(p.now)
		s.SubmitTime = s.QueuedTime
	case breezeml.StageRequeueCooldown:
		if until := ptr.Deref(s.CooldownTime, metav1.Time{}).Time; !suspended(p.job) && p.seen.Now.Before(until) {
			p.plan.DueBy(until)
			return
		}
		p.enqueue(p.now)
	}
	switch was := isTrue(p.job, breezeml.JobSuspended); {
	case suspended(p.job):
		if !was {
			p.setCondition(breezeml.JobSuspended, true, breezeml.SuspendedReason, p.message(breezeml.SuspendedMessage))
			p.addEvent(jobs.Normal(breezeml.SuspendedReason, p.message(breezeml.SuspendedMessage)))
		}
		p.setStage(breezeml.StageWaiting, 0)
		s.ExecStatus.StartTime = nil
		return
	case was:
		p.setCondition(breezeml.JobSuspended, false, breezeml.ResumedReason, p.message(breezeml.ResumedMessage))
		p.addEvent(jobs.Normal(breezeml.ResumedReason, p.message(breezeml.ResumedMessage)))
		p.enqueue(p.now)
	}
	p.followAdmission(before.Stage)
}

// enqueue makes the job wait for its first start, or for another one, behind the jobs that are already waiting.
func (p *planner) enqueue(since metav1.Time) {
	p.setStage(breezeml.StageWaiting, 0)
	p.job.Status.CooldownTime, p.job.Status.SizeLimit = nil, nil
	p.job.Status.QueuedTime = since.DeepCopy()
}

// followAdmission makes the job run with what it was granted, or wait for it.
func (p *planner) followAdmission(before breezeml.Stage) {
	s := &p.job.Status
	p.reviewLimit()
	switch size := p.granted(); {
	case size > 0:
		p.setStage(breezeml.StageRunning, size)
		if before != breezeml.StageRunning {
			s.LastExecTime = p.now.DeepCopy()
		}
		if s.ExecStatus.StartTime == nil {
			s.ExecStatus.StartTime = p.now.DeepCopy()
		}
	case p.seen.Admission.Deactivated:
		p.setStage(breezeml.StageCancelled, 0)
	default:
		p.setStage(breezeml.StageWaiting, 0)
	}
}

// granted returns with how many workers the job may run, 0 if it may not run. A user who lowers maxSize below what was
// granted gets the lower number, and so does a job of which a larger size has failed. Once a worker has succeeded, the
// job is about to end and does not grow: new workers would repeat finished work.
func (p *planner) granted() int32 {
	size := sizesOf(p.job)
	most := size.most
	if limit := limitOf(p.job); limit > 0 {
		most = min(most, max(limit, size.least))
	}
	if s := &p.job.Status; s.Stage == breezeml.StageRunning && p.succeeded() > 0 {
		most = min(most, s.CurrentSize)
	}
	switch p.seen.Admission.Grant {
	case jobs.Unqueued:
		return most
	case jobs.Admitted:
		return min(most, p.seen.Admission.PodSets[worker].Count)
	}
	return 0
}

// succeeded counts the pods that have succeeded.
func (p *planner) succeeded() int32 {
	var n int32
	for _, pod := range p.pods {
		if pod.Status.Phase == corev1.PodSucceeded && !replicas.IsTerminating(pod) {
			n++
		}
	}
	return n
}

// setStage sets stage and size. It resets the requeue time, since the pods of a new size have not been pending yet.
func (p *planner) setStage(stage breezeml.Stage, size int32) {
	s := &p.job.Status
	if s.Stage == stage && s.CurrentSize == size {
		return
	}
	if s.Stage == breezeml.StageRunning && stage == breezeml.StageRunning {
		p.addEvent(jobs.Normal(breezeml.ResizedReason, fmt.Sprintf("The job continues with %d workers instead of %d", size, s.CurrentSize)))
	}
	s.Stage, s.CurrentSize, s.RequeueTime = stage, size, nil
}

// deadline returns when the job must have ended, zero for never.
func (p *planner) deadline() time.Time {
	started, seconds := p.job.Status.ExecStatus.StartTime, p.job.Spec.RunPolicy.ActiveDeadlineSeconds
	if started == nil || seconds == nil || *seconds > int64(time.Duration(1<<62)/time.Second) {
		return time.Time{}
	}
	return started.Add(time.Duration(*seconds) * time.Second)
}
