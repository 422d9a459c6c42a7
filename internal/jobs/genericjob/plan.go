package genericjob

import (
	tensorstack "github.com/musterhq/muster/api/tensorstack/v1beta1"
	"github.com/musterhq/muster/internal/jobs"
)

// plan returns what to do about a GenericJob.
func plan(seen jobs.Seen[*tensorstack.GenericJob]) jobs.Plan {
	p := newPlanner(seen)
	over := outcome(p.job)
	if over == nil && p.pauseAtTimeLimit() {
		p.plan.Progress = p.progress(nil)
		p.plan.Progress.Reclaimable = nil // no status is written that would record finished replicas
		return *p.plan
	}
	if over == nil {
		if over = judge(p.job, p.roster); over != nil {
			p.plan.EndEvent(over, tensorstack.SucceededReason, tensorstack.FailedReason)
		}
	}
	switch {
	case over != nil:
		p.cleanUp()
	case paused(p.job):
		p.pause()
	case !seen.Admission.MayRun():
		p.hold()
	default:
		p.run()
	}
	p.report(over)
	p.plan.Progress = p.progress(over)
	return *p.plan
}
