package trainingjob

import (
	breezeml "github.com/musterhq/muster/api/breezeml/v1"
	"github.com/musterhq/muster/internal/jobs"
)

// plan returns what has to be done for a TrainingJob, given the observed state.
func plan(settings Settings, seen jobs.Seen[*breezeml.TrainingJob]) jobs.Plan {
	p := newPlanner(settings, seen)
	p.status.setCreated()
	over := outcome(p.job)
	if over == nil {
		if over = p.decide(); over != nil {
			p.status.end(over)
		}
	}
	switch {
	case over != nil:
		p.cleanUp(over)
	case p.job.Status.Stage == breezeml.StageRunning:
		p.run()
	default:
		p.hold()
	}
	p.report(over)
	p.plan.Progress = p.progress(over)
	return *p.plan
}

// decide moves the job to the stage and size that it should have, or returns how it has ended. If the job is to stop,
// the results of workers that ended before still count: otherwise, finished work would be run again.
func (p *planner) decide() *jobs.Outcome {
	if p.mustStop() {
		p.assessWorkers()
		if over := p.ended(); over != nil {
			return over
		}
	}
	p.status.advance()
	p.assessWorkers()
	p.goOnWithoutLost()
	over, due := p.judge()
	p.plan.DueBy(due)
	return over
}
