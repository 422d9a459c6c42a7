package batchjob

import (
	batchv1 "k8s.io/api/batch/v1"

	"github.com/musterhq/muster/api/muster"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/jobs/write"
)

// hold keeps the Job from running. Once none of its pods is left, it restores what the start replaced.
func hold(p *jobs.Plan, seen jobs.Seen[*batchv1.Job]) {
	switch job := seen.Job; {
	case !suspended(job) && hasStarted(job): // it was admitted before
		p.Add(jobs.Stop(job))
	case !suspended(job):
		// It holds no quota that others might get too early, and is stopped at once.
		change := jobs.Suspend(job)
		if job.Generation > 1 {
			change = change.WithEvent(write.Warning(queueDecidesReason, resumeRevertedMessage))
		}
		p.Add(change)
	case hasStarted(job) && jobs.HasNoPods(job):
		p.Add(rewrite(job, restoredWhole(job)))
	case isToRestart(job) && jobs.HasNoPods(job):
		restart(p, seen)
	}
}

// mark marks the Job as one that queues for itself, so that its users cannot start it. The admission policies have done
// that at its creation, unless they came later, or the API server does not serve them.
func mark(p *jobs.Plan, job *batchv1.Job) {
	if job.Annotations[muster.QueuedAnnotation] == muster.QueuedItself {
		return
	}
	if len(p.Writes) == 0 {
		p.Add(write.Change(job, job).DespiteStatus())
	}
	for i := range p.Writes {
		p.Writes[i] = p.Writes[i].Marked(muster.QueuedItself)
	}
}

// The events for a user whose change of a queued Job is reverted.
const (
	queueDecidesReason    = "QueueDecides"
	resumeRevertedMessage = "spec.suspend is true again: the queue decides when this Job runs"
	// The API server allows changes of the requests in the template of a suspended Job.
	otherPodsMessage       = "the pod template was changed after the Job was given its quota: it is queued again, for what it asks for now"
	noPodsMessage          = "spec.parallelism was 0 when the Job was given its quota: it is queued again, for the pods that it asks for now"
	limitedMessage         = "spec.parallelism is %d again: the Job has quota for as many pods; submit another Job for more"
	suspendRevertedMessage = "spec.suspend is false again: the queue decides when this Job runs; to hold it, set spec.active of its Workload to false"
)
