package genericjob

import (
	"fmt"
	"time"

	tensorstack "github.com/musterhq/muster/api/tensorstack/v1beta1"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/jobs/write"
	"github.com/musterhq/muster/internal/workload"
)

// Messages of events for a job that its user pauses and resumes.
const (
	pausedMessage  = "The job is paused: its pods are deleted until it is resumed"
	resumedMessage = "The job is resumed"
)

// pause deletes the unfinished pods of a job that its user has paused. The condition Paused is written first, as pods
// are created differently once it is set.
func (p *planner) pause() {
	p.plan.DeletePods(p.roster.Pods(true))
	if isTrue(p.job, tensorstack.JobPaused) {
		return
	}
	p.plan.StatusFirst = true
	p.plan.AddEvents(write.Normal(tensorstack.PausedReason, pausedMessage))
}

// Event of a job that has used up the time its queue allows. The messages are followed by which time that is, and where
// it is set.
const (
	maxDurationReason  = "MaxDurationExceeded"
	stoppedMessage     = "The job has ended, and its remaining pods are stopped: they have reached the maximum execution time of its queue"
	maxDurationMessage = "The job has reached the maximum execution time of its queue and is paused; set spec.runMode.pause.enabled to false to queue it again"
)

// limitEvent returns the event of a job that has used up the time its queue allows.
func (p *planner) limitEvent(message string) write.Event {
	return write.Warning(maxDurationReason, fmt.Sprintf("%s. The limit is %s, set by %s", message,
		workload.FormatDuration(p.seen.Admission.Bound), p.seen.Admission.BoundSource))
}

// pauseAtTimeLimit pauses a job that has used up its time, through the field that its user would set, and reports
// whether it did. Everything else waits for the next reconcile, as the status could not be written over this change.
func (p *planner) pauseAtTimeLimit() bool {
	if paused(p.job) || !p.timeLimitReached() {
		return false
	}
	held := p.seen.Job.DeepCopy()
	if held.Spec.RunMode == nil {
		held.Spec.RunMode = &tensorstack.RunMode{}
	}
	if held.Spec.RunMode.Pause == nil {
		held.Spec.RunMode.Pause = &tensorstack.PauseMode{}
	}
	held.Spec.RunMode.Pause.Enabled = true
	p.plan.Add(write.Change(p.seen.Job, held).WithEvent(p.limitEvent(maxDurationMessage)))
	return true
}

// timeLimitReached reports whether the job has used up the time that its queue allows at a stretch, and
// otherwise schedules a reconcile for then. A job that keeps its quota while it is paused, as it names
// a Workload, gets its full time again when it is resumed.
func (p *planner) timeLimitReached() bool {
	until := p.seen.Admission.Until
	if p.seen.Admission.Grant != jobs.Admitted || until.IsZero() {
		return false
	}
	if again := p.lastResumed().Add(p.seen.Admission.Bound); until.Before(again) {
		until = again
	}
	if p.seen.Now.Before(until) {
		p.plan.DueBy(until)
		return false
	}
	return true
}

// lastResumed returns when the job was last resumed, zero if never. For a job that ended while paused, it
// is the time of the pause.
func (v *view) lastResumed() time.Time {
	if !wasPaused(v.job) {
		return time.Time{}
	}
	if isTrue(v.job, tensorstack.JobPaused) && !paused(v.job) && outcomeOf(v.seen.Job) == nil {
		return v.seen.Now // by this reconcile
	}
	return condition(v.job, tensorstack.JobPaused).LastTransitionTime.Time
}

// resume adds the event that the job is no longer paused.
func (p *planner) resume() {
	if isTrue(p.job, tensorstack.JobPaused) {
		p.plan.AddEvents(write.Normal(tensorstack.ResumedReason, resumedMessage))
	}
}
