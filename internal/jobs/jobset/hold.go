package jobset

import (
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
	"github.com/musterhq/muster/api/muster"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/jobs/write"
)

// The event for a user whose change of spec.suspend is reverted.
const (
	queueDecidesReason  = "QueueDecides"
	queueDecidesMessage = "spec.suspend is false again: the queue decides when this JobSet runs; to hold it, set spec.active of its Workload to false"
)

// mustClearSuspend reports whether spec.suspend of an admitted JobSet is still true. The queue decides about a queued
// JobSet, and the field should show that it runs.
func (p *planner) mustClearSuspend() bool {
	return p.seen.Admission.Grant == jobs.Admitted && ptr.Deref(p.seen.Job.Spec.Suspend, false)
}

// clearSuspend sets spec.suspend to false. All else is left to the next plan: a status write would conflict with
// this change.
func (p *planner) clearSuspend() {
	resumed := p.seen.Job.DeepCopy()
	resumed.Spec.Suspend = ptr.To(false)
	change := write.Change(p.seen.Job, resumed)
	if len(p.children.all()) > 0 { // it has run before, so spec.suspend was set later
		change = change.WithEvent(write.Warning(queueDecidesReason, queueDecidesMessage))
	}
	p.plan.Add(change)
}

// hold stops a JobSet that may not run.
func (p *planner) hold() {
	p.suspendJobs()
	p.status.resetAttempts()
	p.restartWhole()
}

// suspendJobs suspends running Jobs and sets the condition Suspended.
func (p *planner) suspendJobs() {
	for _, job := range p.children.active {
		if suspended(job) || !job.DeletionTimestamp.IsZero() {
			continue
		}
		stop := jobs.Stop(job)
		if p.seen.Admission.Grant != jobs.Unqueued {
			stop = stop.Marked(muster.QueuedByOwner)
		}
		p.plan.Add(stop)
		if p.seen.Admission.Grant == jobs.Waiting && job.Annotations[muster.QueuedAnnotation] == muster.QueuedByOwner {
			p.plan.StartedUnheld = p.plan.StartedUnheld || jobs.Stops(p.plan.Writes, job)
		}
	}
	p.status.setCondition(jobset.JobSetSuspended, metav1.ConditionTrue, jobset.JobSetSuspendedReason,
		jobset.JobSetSuspendedMessage, corev1.EventTypeNormal)
}

// A JobSet that restarts as a whole, see jobs.RestartsWhole, has no Job of which pods have succeeded when it is
// admitted again. For example, one of two workers is done when the JobSet is evicted. Once all Jobs have stopped, the
// Job that is done is deleted. Its quota is returned when it is being deleted, and the JobSet queues for both workers.
// The Job that is not done stays: it would run the same pods if it were deleted.

const restartsWholeMessage = "The JobSet was stopped when pods of %d of its Jobs had succeeded, such as %s: all pods are run again"

// restartWhole deletes the Jobs of which pods have succeeded, once no pod of the JobSet is left: until then it may
// still succeed or fail.
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
		deletion := write.DeleteInForeground(job).OrGoOn(jobs.RestartWholeRefusedReason)
		if i == 0 {
			deletion = deletion.WithEvent(write.Warning(jobs.RestartsWholeReason,
				fmt.Sprintf(restartsWholeMessage, len(done), job.Name)))
		}
		p.plan.Add(deletion)
	}
}

// awaitsRestart reports whether the JobSet keeps its quota until the Jobs that are done are being deleted.
func (v *view) awaitsRestart() bool {
	return v.seen.Admission.Grant == jobs.Stopping && outcomeOf(v.js) == nil && v.restartsWhole() && len(v.doneJobs()) > 0
}

// doneJobs returns the Jobs of the current attempt, not being deleted yet, of which pods have succeeded.
func (v *view) doneJobs() (out []*batchv1.Job) {
	for _, job := range v.children.current() {
		if job.DeletionTimestamp.IsZero() && hasDonePods(job) {
			out = append(out, job)
		}
	}
	return out
}
