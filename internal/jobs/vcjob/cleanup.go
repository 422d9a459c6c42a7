package vcjob

import (
	"github.com/musterhq/muster/internal/jobs/write"
)

// cleanUp stops what still runs of a job that has finished, and finally deletes the job.
func (p *planner) cleanUp() {
	p.deleteUnfinished()
	ended, ttl := p.job.Status.State.LastTransitionTime.Time, p.job.Spec.TTLSecondsAfterFinished
	p.plan.Expire(write.Delete(p.seen.Job), ended, ttl, p.seen.Now)
}

// deleteUnfinished deletes all pods that have not finished.
func (p *planner) deleteUnfinished() { p.plan.DeletePods(p.roster.Pods(true)) }
