package trainingjob

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	breezeml "github.com/musterhq/muster/api/breezeml/v1"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/pointers"
	"github.com/musterhq/muster/internal/replicas"
)

// outcomeOf returns how the job has ended, nil if it has not.
func outcomeOf(job *breezeml.TrainingJob) *jobs.Outcome {
	for _, kind := range []breezeml.JobConditionType{breezeml.JobSucceeded, breezeml.JobFailed} {
		if isTrue(job, kind) {
			return &jobs.Outcome{Succeeded: kind == breezeml.JobSucceeded, Message: condition(job, kind).Message}
		}
	}
	return nil
}

// judge returns how the job has ended, nil if it has not, and when its deadline is, zero for none.
func (v *view) judge() (outcome *jobs.Outcome, due time.Time) {
	runs := v.job.Status.Stage == breezeml.StageRunning
	if runs {
		if outcome := v.workersOutcome(); outcome != nil {
			return outcome, time.Time{}
		}
	}
	due = v.deadline()
	if !due.IsZero() && !v.seen.Now.Before(due) {
		return &jobs.Outcome{Message: v.message(breezeml.DeadlineMessage)}, time.Time{}
	}
	if runs {
		return v.backoffExceeded(), due
	}
	return nil, due
}

// workersOutcome returns how the workers of a running job have ended, nil if they have not.
func (v *view) workersOutcome() *jobs.Outcome {
	if failed, first := v.failedForGood(); failed > 0 {
		return &jobs.Outcome{Message: fmt.Sprintf(breezeml.FailedMessage, v.job.Name, failed, failureOf(first))}
	}
	if len(v.roster.Replicas) > 0 &&
		v.roster.All(replicas.In(replicas.Succeeded)) {
		return &jobs.Outcome{Succeeded: true, Message: v.message(breezeml.SucceededMessage)}
	}
	return nil
}

// failedForGood returns the number of workers whose pods have failed and are not recreated, and the first of these
// pods. Failed workers beyond the current size count too: shrinking does not undo a failure.
func (v *view) failedForGood() (int, *corev1.Pod) {
	var (
		count int
		first *corev1.Pod
	)
	policy := restartPolicyOf(v.job, v.lattice())
	note := func(pod *corev1.Pod) {
		if count++; first == nil {
			first = pod
		}
	}
	for r := range pointers.To(v.roster.Replicas) {
		if r.Phase == replicas.Failed && !r.NeedsRestart {
			note(r.Pod)
		}
	}
	for _, pod := range v.roster.Surplus {
		if pod.Status.Phase == corev1.PodFailed && !replicas.IsTerminating(pod) && !replicas.Disrupted(pod) &&
			!v.isLost(pod) && !isRetried(policy, pod) {
			note(pod)
		}
	}
	return count, first
}

// backoffExceeded returns a failure if the workers have been restarted more often than the backoff limit allows, else
// nil.
func (v *view) backoffExceeded() *jobs.Outcome {
	limit := v.job.Spec.RunPolicy.BackoffLimit
	if limit == nil {
		return nil
	}
	var (
		restarts int64
		because  *corev1.Pod
	)
	for _, n := range v.job.Status.Restarts {
		restarts += int64(n)
	}
	for r := range pointers.To(v.roster.Replicas) {
		if r.UID() == "" {
			continue
		}
		inPlace := restartsInPlace(r.Pod)
		if r.NeedsRestart {
			inPlace++
		}
		if restarts += inPlace; inPlace > 0 && because == nil {
			because = r.Pod
		}
	}
	if restarts <= int64(*limit) || because == nil {
		return nil
	}
	return &jobs.Outcome{Message: fmt.Sprintf(breezeml.BackoffMessage, v.job.Name, failureOf(because))}
}

// setOutcome records in the status how the job has ended.
func (rep *reporter) setOutcome(o *jobs.Outcome) {
	condition := breezeml.JobSucceeded
	if !o.Succeeded {
		condition = breezeml.JobFailed
	}
	rep.setCondition(condition, true, o.Reason(breezeml.SucceededReason, breezeml.FailedReason), o.Message)
	rep.plan.ReportOutcome(o, breezeml.SucceededReason, breezeml.FailedReason)
	s := &rep.job.Status
	rep.setStage(breezeml.StageCompleted, 0)
	s.CooldownTime = nil
	s.CompletionTime, s.ExecStatus.CompletionTime = rep.now.DeepCopy(), rep.now.DeepCopy()
}

// deadline returns when the job must have ended, zero for never.
func (v *view) deadline() time.Time {
	started, seconds := v.job.Status.ExecStatus.StartTime, v.job.Spec.RunPolicy.ActiveDeadlineSeconds
	if started == nil || seconds == nil || *seconds > int64(time.Duration(1<<62)/time.Second) {
		return time.Time{}
	}
	return started.Add(time.Duration(*seconds) * time.Second)
}
