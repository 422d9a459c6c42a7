package genericjob

import (
	"time"

	tensorstack "github.com/musterhq/muster/api/tensorstack/v1beta1"
	"github.com/musterhq/muster/internal/jobs"
)

// pause deletes the unfinished pods of a job that its user has paused. The condition Paused is written
// first, as later pods are created differently because of it.
func (pl *planner) pause() {
	pl.plan.DeletePods(pl.roster.Pods(true))
	if isTrue(pl.job, tensorstack.JobPaused) {
		return
	}
	pl.plan.StatusFirst = true
	pl.plan.Events = append(pl.plan.Events, jobs.Normal(tensorstack.PausedReason, pausedMessage))
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
func (pl *planner) pauseAtTimeLimit() bool {
	if paused(pl.job) || !pl.timeLimitReached() {
		return false
	}
	held := pl.seen.Job.DeepCopy()
	if held.Spec.RunMode == nil {
		held.Spec.RunMode = &tensorstack.RunMode{}
	}
	if held.Spec.RunMode.Pause == nil {
		held.Spec.RunMode.Pause = &tensorstack.PauseMode{}
	}
	held.Spec.RunMode.Pause.Enabled = true
	pl.plan.Writes = append(pl.plan.Writes, jobs.Change(pl.seen.Job, held).WithEvent(jobs.Warning(maxDurationReason, maxDurationMessage)))
	return true
}

// timeLimitReached reports whether the job has used up the time that its queue allows at a stretch, and
// otherwise schedules a reconcile for then. A job that keeps its quota while it is paused, as it names
// a Workload, gets its full time again when it is resumed.
func (pl *planner) timeLimitReached() bool {
	until := pl.seen.Admission.Until
	if pl.seen.Admission.Grant != jobs.Admitted || until.IsZero() {
		return false
	}
	if again := pl.lastResumed().Add(pl.seen.Admission.Bound); until.Before(again) {
		until = again
	}
	if pl.seen.Now.Before(until) {
		pl.plan.DueBy(until)
		return false
	}
	return true
}

// lastResumed returns when the job was last resumed, zero if never. For a job that ended while paused, it
// is the time of the pause.
func (pl *planner) lastResumed() time.Time {
	if !wasPaused(pl.job) {
		return time.Time{}
	}
	if isTrue(pl.job, tensorstack.JobPaused) && !paused(pl.job) && outcome(pl.seen.Job) == nil {
		return pl.seen.Now // by this reconcile
	}
	return condition(pl.job, tensorstack.JobPaused).LastTransitionTime.Time
}

// resume adds the event that the job is no longer paused.
func (pl *planner) resume() {
	if isTrue(pl.job, tensorstack.JobPaused) {
		pl.plan.Events = append(pl.plan.Events, jobs.Normal(tensorstack.ResumedReason, resumedMessage))
	}
}

// wasPaused reports whether the job was paused before, which the condition Paused records.
func wasPaused(job *tensorstack.GenericJob) bool {
	c := condition(job, tensorstack.JobPaused)
	return c != nil && (c.Reason == tensorstack.PausedReason || c.Reason == tensorstack.ResumedReason)
}
