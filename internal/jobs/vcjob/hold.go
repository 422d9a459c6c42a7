package vcjob

import (
	"cmp"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	volcano "github.com/musterhq/muster/api/volcano/batch/v1alpha1"
	"github.com/musterhq/muster/internal/jobs"
)

// hold deletes the unfinished pods of a job that may not run, and reports what the job waits for.
// Finished pods stay: they hold no resources and do not run again.
func (p *planner) hold() {
	p.deleteUnfinished()
	reason, message := p.waitingReason()
	if p.job.Status.State.Phase != volcano.Pending {
		p.status.setDerivedPhase(volcano.Pending, reason, message)
		return
	}
	p.job.Status.State.Reason, p.job.Status.State.Message = reason, message
}

// waitingReason returns why a job has no quota.
func (v *view) waitingReason() (reason, message string) {
	if v.seen.Mistake != "" {
		return jobs.InvalidJob, v.seen.Mistake
	}
	if totalOf(v.job) == 0 {
		return v.startingState()
	}
	queue := cmp.Or(v.job.Labels[kueue.QueueLabel], queueOf(v.job))
	if why := v.seen.Facts.Queues.NotFound(queue, v.job.Namespace); why != "" {
		if before := v.job.Status.State.Message; jobs.IsNotFoundMessage(before, queue, v.job.Namespace) {
			why = before
		}
		return volcano.QueueNotFound, why
	}
	if why := v.seen.Admission.Why; why != "" {
		return volcano.WaitingForQuota, why
	}
	return volcano.WaitingForQuota, "The job waits in queue " + queue
}
