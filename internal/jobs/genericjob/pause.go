package genericjob

import (
	"time"

	tensorstack "github.com/musterhq/muster/api/tensorstack/v1beta1"
	"github.com/musterhq/muster/internal/jobs"
)

// pause deletes the unfinished pods of a job that its user has paused. The condition Paused is written
// first, as later pods are created differently because of it.
func (l *planner) pause() {
	l.plan.DeletePods(l.roster.Pods(true))
	if isTrue(l.job, tensorstack.JobPaused) {
		return
	}
	l.plan.StatusFirst = true
	l.plan.Events = append(l.plan.Events, jobs.Normal(tensorstack.PausedReason, pausedMessage))
}

// Event messages for a job that has used up the time its queue allows.
const (
	maxDurationReason  = "MaxDurationExceeded"
	stoppedMessage     = "The job has ended, and its remaining pods are stopped: they have reached the maximum execution time of its queue"
	maxDurationMessage = "The job has reached the maximum execution time of its queue and is paused; set spec.runMode.pause.enabled to false to queue it again"
)

// pauseAtTimeLimit pauses a job that has used up its time, through the field that its user would set, and
// reports whether it did. Everything else waits for the next reconcile, as the status could not be
// written over this change.
func (l *planner) pauseAtTimeLimit() bool {
	if paused(l.job) || !l.timeLimitReached() {
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

// timeLimitReached reports whether the job has used up the time that its queue allows at a stretch, and
// otherwise schedules a reconcile for then. A job that keeps its quota while it is paused, as it names
// a Workload, gets its full time again when it is resumed.
func (l *planner) timeLimitReached() bool {
	until := l.seen.Admission.Until
	if l.seen.Admission.Grant != jobs.Admitted || until.IsZero() {
		return false
	}
	if again := l.lastResumed().Add(l.seen.Admission.Bound); until.Before(again) {
		until = again
	}
	if l.seen.Now.Before(until) {
		l.plan.DueBy(until)
		return false
	}
	return true
}

// lastResumed returns when the job was last resumed, zero if never. For a job that ended while paused, it
// is the time of the pause.
func (l *planner) lastResumed() time.Time {
	if !wasPaused(l.job) {
		return time.Time{}
	}
	if isTrue(l.job, tensorstack.JobPaused) && !paused(l.job) && outcome(l.seen.Job) == nil {
		return l.seen.Now // by this reconcile
	}
	return condition(l.job, tensorstack.JobPaused).LastTransitionTime.Time
}

// resume adds the event that the job is no longer paused.
func (l *planner) resume() {
	if isTrue(l.job, tensorstack.JobPaused) {
		l.plan.Events = append(l.plan.Events, jobs.Normal(tensorstack.ResumedReason, resumedMessage))
	}
}

// wasPaused reports whether the job was paused before, which the condition Paused records.
func wasPaused(job *tensorstack.GenericJob) bool {
	c := condition(job, tensorstack.JobPaused)
	return c != nil && (c.Reason == tensorstack.PausedReason || c.Reason == tensorstack.ResumedReason)
}
