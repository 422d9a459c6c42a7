package jobset

import (
	"slices"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/musterhq/muster/internal/jobs/write"
	"github.com/musterhq/muster/internal/pointers"
)

// cleanUp deletes what still runs, and finally the JobSet itself if it has a time to live. Jobs that have ended
// are kept for their logs.
func (p *planner) cleanUp() {
	p.deleteJobs(p.children.previous)
	p.deleteJobs(p.children.active)
	p.removeExpired()
	p.plan.Expire(write.DeleteInForeground(p.seen.Job), outcomeTime(p.js), p.js.Spec.TTLSecondsAfterFinished, p.seen.Now)
}

// removeExpired deletes ended Jobs whose template has a time to live, once that has passed since the end of the JobSet.
func (p *planner) removeExpired() {
	for rj := range pointers.To(p.js.Spec.ReplicatedJobs) {
		for _, job := range slices.Concat(p.children.succeeded, p.children.failed) {
			if isOf(job, rj.Name) && job.DeletionTimestamp.IsZero() {
				ttl := rj.Template.Spec.TTLSecondsAfterFinished
				p.plan.Expire(write.Delete(job), outcomeTime(p.js), ttl, p.seen.Now)
			}
		}
	}
}

// deleteJobs deletes Jobs in the foreground, so that their names stay taken until their pods are gone.
func (p *planner) deleteJobs(list []*batchv1.Job) {
	for _, job := range list {
		if job.DeletionTimestamp.IsZero() {
			p.plan.Add(write.DeleteInForeground(job))
		}
	}
}
