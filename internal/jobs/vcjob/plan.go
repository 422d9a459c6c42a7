package vcjob

import (
	volcano "github.com/musterhq/muster/api/volcano/batch/v1alpha1"
	"github.com/musterhq/muster/internal/jobs"
)

// plan returns what to do about a VCJob. A decision about the job's phase is written to the status first, and its
// consequences are left to the next reconcile, so that a failed write never makes it decide twice.
func plan(seen jobs.Seen[*volcano.Job]) jobs.Plan {
	p := newPlanner(seen)
	switch {
	case hasOutcome(p.job):
		p.cleanUp()
	case p.executeCommand():
	default:
		p.step()
	}
	p.deleteCommands()
	p.status.noteMissingClass()
	p.report()
	p.plan.Progress = p.progress()
	p.job.Spec = seen.Job.Spec // if its size was changed, it stays as its user wrote it
	return *p.plan
}

// step advances a job that has not finished.
func (p *planner) step() {
	switch p.job.Status.State.Phase {
	case volcano.Aborting:
		p.deleteUnfinished()
		p.status.setPhaseOnceInactive(volcano.Aborted, "Aborted",
			"All pods are stopped; a Command ResumeJob starts the job again")
	case volcano.Aborted:
		p.deleteUnfinished()
	case volcano.Completing:
		p.deleteUnfinished()
		p.status.setPhaseOnceInactive(volcano.Completed, p.job.Status.State.Reason, p.job.Status.State.Message)
	case volcano.Terminating:
		p.deleteUnfinished()
		p.status.setPhaseOnceInactive(volcano.Terminated, p.job.Status.State.Reason, p.job.Status.State.Message)
	case volcano.Restarting:
		p.awaitRestart()
	default:
		if !p.seen.Admission.MayRun() {
			p.hold()
			return
		}
		if p.job.Status.State.Reason == admittedAnewReason {
			return // its Workload is being deleted
		}
		if !p.status.completeAtMinSuccess() && !p.status.react() &&
			(p.policies.failureWaits || !p.status.setOutcomeWhenAllEnded()) {
			p.run()
		}
	}
}
