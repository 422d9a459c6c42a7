package jobset

import (
	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
	"github.com/musterhq/muster/internal/jobs"
)

// plan returns what has to be done for a JobSet, given the observed state.
func plan(seen jobs.Seen[*jobset.JobSet]) jobs.Plan {
	p := newPlanner(seen)
	js := p.js
	p.status.countJobs()
	p.plan.Status = p.js
	switch {
	case hasOutcome(js):
		p.cleanUp()
	case p.mustClearSuspend():
		p.clearSuspend()
		p.plan.Status = nil
	case len(p.children.failed) > 0:
		p.applyFailurePolicy()
	case p.succeeded():
		p.status.complete()
	case p.restartInPlace():
		// The restart budget is exhausted, and the JobSet has failed.
	default:
		p.run()
	}
	p.plan.StatusCanWait = p.plan.Status != nil && (sameButCounts(&seen.Job.Status, &p.js.Status) || p.justQueued())
	p.plan.Progress = p.progress()
	return *p.plan
}
