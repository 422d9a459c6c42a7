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
