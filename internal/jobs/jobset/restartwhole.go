package jobset

import (
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/musterhq/muster/internal/jobs"
)

// A JobSet that restarts as a whole, see jobs.RestartsWhole, has no Job of which pods have succeeded when it is admitted
// again. For example, one of two workers is done when the JobSet is evicted. Once all Jobs have stopped, the Job that is
// done is deleted. Its quota is returned when it is being deleted, and the JobSet queues for both workers. The other Job
// stays: it would run the same pods if it were deleted.

const restartsWholeMessage = "The JobSet was stopped when pods of %d of its Jobs had succeeded, such as %s: all pods are run again"

// restartsWhole reports whether a JobSet in a queue runs all its pods again after it was stopped.
func (p *planner) restartsWhole() bool {
	return p.seen.Admission.Grant != jobs.Unqueued && !p.seen.MustGoOn && jobs.RestartsWhole(p.js)
}

// awaitsRestart reports whether the JobSet keeps its quota until the Jobs that are done are being deleted.
func (p *planner) awaitsRestart() bool {
	return p.seen.Admission.Grant == jobs.Stopping && outcome(p.js) == nil && p.restartsWhole() && len(p.doneJobs()) > 0
}

// doneJobs returns the Jobs of the current attempt, not being deleted yet, of which pods have succeeded.
func (p *planner) doneJobs() (out []*batchv1.Job) {
	for _, job := range p.children.current() {
		if job.DeletionTimestamp.IsZero() && hasDonePods(job) {
			out = append(out, job)
		}
	}
	return out
}

// restartWhole deletes the Jobs of which pods have succeeded, once no pod of the JobSet is left: until then it may still
// succeed or fail.
func (p *planner) restartWhole() {
	if p.seen.Admission.Grant == jobs.Unqueued || !jobs.RestartsWhole(p.js) {
		return
	}
	for _, job := range p.children.current() {
		if !jobs.HasNoPods(job) {
			return
		}
	}
	done := p.doneJobs()
	for i, job := range done {
		write := jobs.Delete(job, metav1.DeletePropagationForeground).OrGoOn(jobs.RestartWholeRefusedReason)
		if i == 0 {
			write = write.WithEvent(jobs.Warning(jobs.RestartsWholeReason, fmt.Sprintf(restartsWholeMessage, len(done), job.Name)))
		}
		p.plan.Writes = append(p.plan.Writes, write)
	}
}
