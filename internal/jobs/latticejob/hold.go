package latticejob

import (
	lattice "github.com/musterhq/muster/api/lattice/v1alpha1"
	"github.com/musterhq/muster/internal/jobs/write"
)

// waiting returns the message that the job waits for quota, with the queue's reason if there is one.
func waiting(why string) string {
	if why == "" {
		return "Waiting for quota"
	}
	return "Waiting for quota: " + why
}

// wait reports why the VCJob has no quota: not yet, or no longer.
func (p *planner) wait(message string) {
	if p.job.Status.Phase == lattice.Running {
		p.goOnRunning(message)
		return
	}
	if p.resubmitIfChanged() {
		return
	}
	p.status.pend(message)
	if p.vcjob.Annotations[gpusAnnotation] != "" {
		p.plan.DueBy(p.seen.Now.Add(gpuRecheckInterval))
	}
	if !p.recordsDomains() {
		p.relabel() // records the labels on the VCJob, so that their changes are observed
		return
	}
	p.relabelIfChanged()
}

// deleteQueuedVCJob deletes the VCJob of a job that waits for quota and has not run: it was created when VCJobs
// queued themselves, and now Volcano would run it.
func (p *planner) deleteQueuedVCJob() {
	p.deleteVCJob(write.Delete)
	p.status.pend(waiting(p.seen.Admission.Why))
}

// evict stops a job that lost its quota. The job is submitted again once it is admitted. The status is written first: a
// running job without a VCJob is otherwise taken for one whose VCJob was deleted by a user.
func (p *planner) evict() {
	switch {
	case p.vcjob != nil:
		p.deleteVCJob(write.DeleteInForeground)
		p.plan.StatusFirst = true
	case p.job.Status.Phase != lattice.Running:
		return // the status is written, and the remaining pods are terminating
	}
	const message = "Evicted: its pods are stopped, and it waits for quota again"
	p.status.pend(message, write.Normal(evictedReason, message))
}
