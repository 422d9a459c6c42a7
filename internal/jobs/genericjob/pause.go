package genericjob

import (
	tensorstack "github.com/musterhq/muster/api/tensorstack/v1beta1"
	"github.com/musterhq/muster/internal/jobs"
)

// pause ends the pods of a job that its user has paused, and makes none. That it is
// paused is written first: it is what has its pods made otherwise later on.
func (l *look) pause() {
	l.deletePods(l.roster.Pods(true))
	if isTrue(l.job, tensorstack.JobPaused) {
		return
	}
	l.plan.StatusFirst = true
	l.plan.Events = append(l.plan.Events, jobs.Normal(tensorstack.PausedReason, pausedMessage))
}

// What a user is told whose job has run for as long as its queue lets it.
const (
	maxDurationReason  = "MaxDurationExceeded"
	maxDurationMessage = "The job has run for as long as its queue lets it at a time: it is paused; set spec.runMode.pause.enabled to false to queue it again"
)

// overtime pauses a job that has run for as long as its queue lets it, by the field by
// which its user would, and reports whether it did. All else waits for the next look:
// the status could not be written over this change.
func (l *look) overtime() bool {
	until := l.seen.Admission.Until
	if l.seen.Admission.Grant != jobs.Admitted || until.IsZero() || paused(l.job) {
		return false
	}
	if l.seen.Now.Before(until) {
		l.dueAt(until)
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
	l.plan.Writes = append(l.plan.Writes, jobs.Change(l.seen.Job, held))
	l.plan.Events = append(l.plan.Events, jobs.Warning(maxDurationReason, maxDurationMessage))
	return true
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
