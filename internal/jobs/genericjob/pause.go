package genericjob

import (
	"time"

	tensorstack "github.com/musterhq/muster/api/tensorstack/v1beta1"
	"github.com/musterhq/muster/internal/jobs"
)

// pause ends the pods of a job that its user has paused, and makes none. That it is
// paused is written first: it is what has its pods made otherwise later on.
func (l *look) pause() {
	l.plan.DeletePods(l.roster.Pods(true))
	if isTrue(l.job, tensorstack.JobPaused) {
		return
	}
	l.plan.StatusFirst = true
	l.plan.Events = append(l.plan.Events, jobs.Normal(tensorstack.PausedReason, pausedMessage))
}

// What a user is told whose job has run for as long as its queue lets it.
const (
	maxDurationReason  = "MaxDurationExceeded"
	stoppedMessage     = "The job has ended, and what ran on is stopped: it has run for as long as its queue lets it at a time"
	maxDurationMessage = "The job has run for as long as its queue lets it at a time: it is paused; set spec.runMode.pause.enabled to false to queue it again"
)

// overtime pauses a job that has run for as long as its queue lets it, by the field by
// which its user would, and reports whether it did. All else waits for the next look:
// the status could not be written over this change.
func (l *look) overtime() bool {
	if paused(l.job) || !l.outOfTime() {
		return false
	}
	held := l.seen.Job.DeepCopy()
	if held.Spec.RunMode == nil {
		held.Spec.RunMode = &tensorstack.RunMode{}
	}
	if held.Spec.RunMode.Pause == nil {
		held.Spec.RunMode.Pause = &tensorstack.PauseMode{}
	}
	held.Spec.RunMode.Pause.Enabled = true
	l.plan.Writes = append(l.plan.Writes, jobs.Change(l.seen.Job, held).WithEvent(jobs.Warning(maxDurationReason, maxDurationMessage)))
	return true
}

// outOfTime reports whether the job has run for as long as its queue lets it at a time,
// and else has it looked at again when it has. One that keeps its quota while it is
// paused, because it names a Workload, has its time anew when it is resumed.
func (l *look) outOfTime() bool {
	until := l.seen.Admission.Until
	if l.seen.Admission.Grant != jobs.Admitted || until.IsZero() {
		return false
	}
	if again := l.resumed().Add(l.seen.Admission.Bound); until.Before(again) {
		until = again
	}
	if l.seen.Now.Before(until) {
		l.plan.DueBy(until)
		return false
	}
	return true
}

// resumed is when the job was resumed last, zero if it never was. One that ended while it
// was paused counts from the pause.
func (l *look) resumed() time.Time {
	if !wasPaused(l.job) {
		return time.Time{}
	}
	if isTrue(l.job, tensorstack.JobPaused) && !paused(l.job) && outcome(l.seen.Job) == nil {
		return l.seen.Now // by this look
	}
	return condition(l.job, tensorstack.JobPaused).LastTransitionTime.Time
}

// resume notes that a job is paused no more.
func (l *look) resume() {
	if isTrue(l.job, tensorstack.JobPaused) {
		l.plan.Events = append(l.plan.Events, jobs.Normal(tensorstack.ResumedReason, resumedMessage))
	}
}

// wasPaused reports whether the job's pods are made after a pause: the condition
// Paused remembers it.
func wasPaused(job *tensorstack.GenericJob) bool {
	c := condition(job, tensorstack.JobPaused)
	return c != nil && (c.Reason == tensorstack.PausedReason || c.Reason == tensorstack.ResumedReason)
}
