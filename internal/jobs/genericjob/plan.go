package genericjob

import (
	tensorstack "github.com/musterhq/muster/api/tensorstack/v1beta1"
	"github.com/musterhq/muster/internal/jobs"
)

// plan returns what to do about a GenericJob.
func plan(seen jobs.Seen[*tensorstack.GenericJob]) jobs.Plan {
	p := newPlanner(seen)
	outcome := outcomeOf(p.job)
	if outcome == nil && p.pauseAtTimeLimit() {
		p.plan.Progress = p.progress(nil)
		p.plan.Progress.Reclaimable = nil // no status is written that would record finished replicas
		return *p.plan
	}
	if outcome == nil {
		if outcome = judge(p.job, p.roster); outcome != nil {
			p.plan.ReportOutcome(outcome, tensorstack.SucceededReason, tensorstack.FailedReason)
		}
	}
	switch {
	case outcome != nil:
		p.cleanUp()
	case paused(p.job):
		p.pause()
	case !seen.Admission.MayRun():
		p.hold()
	default:
		p.run()
	}
	p.report(outcome)
	p.plan.Progress = p.progress(outcome)
	return *p.plan
}
