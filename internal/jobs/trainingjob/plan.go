package trainingjob

import (
	breezeml "github.com/musterhq/muster/api/breezeml/v1"
	"github.com/musterhq/muster/internal/jobs"
)

// plan returns what has to be done for a TrainingJob, given the observed state.
func plan(settings Settings, seen jobs.Seen[*breezeml.TrainingJob]) jobs.Plan {
	p := newPlanner(settings, seen)
	p.status.setCreated()
	outcome := outcomeOf(p.job)
	if outcome == nil {
		if outcome = p.decide(); outcome != nil {
			p.status.setOutcome(outcome)
		}
	}
	switch {
	case outcome != nil:
		p.cleanUp(outcome)
	case p.job.Status.Stage == breezeml.StageRunning:
		p.run()
	default:
		p.hold()
	}
	p.report(outcome)
	p.plan.Progress = p.progress(outcome)
	return *p.plan
}

// decide moves the job to the stage and size that it should have, or returns how it has ended. If the job is to stop,
// the results of workers that ended before still count: otherwise, finished work would be run again.
func (p *planner) decide() *jobs.Outcome {
	if p.mustStop() {
		p.assessWorkers()
		if outcome := p.workersOutcome(); outcome != nil {
			return outcome
		}
	}
	p.status.advance()
	p.assessWorkers()
	p.goOnWithoutLost()
	outcome, due := p.judge()
	p.plan.DueBy(due)
	return outcome
}
