package vcjob

import (
	"fmt"

	volcano "github.com/musterhq/muster/api/volcano/batch/v1alpha1"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/replicas"
)

const (
	// admittedAnewReason is the reason of a job that gives its quota back to be admitted with changed
	// tasks.
	admittedAnewReason = "AdmittedAnew"
	// taskWithoutQuotaReason is the reason of a job with a task that must wait for that, and of the event.
	taskWithoutQuotaReason = "TaskWithoutQuota"
)

// taskWithoutQuota returns a task that has pods to run but had none at admission, "" if there is none. No
// quota is reserved for its pods, and a reservation cannot be extended.
func (l *planner) taskWithoutQuota() string {
	if l.seen.Admission.Grant != jobs.Admitted {
		return ""
	}
	for _, r := range l.roster.Missing() {
		if !l.hadPodsAtAdmission(r.Group) && l.mayStart(l.tasks[r.Group]) {
			return r.Group
		}
	}
	return ""
}

// reportTaskWithoutQuota reports what such a task waits for. Running pods are not stopped for it.
func (l *planner) reportTaskWithoutQuota() {
	task := l.taskWithoutQuota()
	if task == "" {
		return
	}
	state, before := &l.job.Status.State, &l.seen.Job.Status.State
	state.Reason = taskWithoutQuotaReason
	state.Message = fmt.Sprintf("Task %s had no pods when the job was admitted: they start once the others have ended, or when the job is aborted and resumed", task)
	if before.Reason != state.Reason || before.Message != state.Message {
		l.plan.Events = append(l.plan.Events, jobs.Warning(taskWithoutQuotaReason, state.Message))
	}
}

// requeue gives the quota back if all other pods of the job have finished, so that the job is admitted
// with its current tasks, and reports whether it did.
func (l *planner) requeue() bool {
	task := l.taskWithoutQuota()
	if task == "" || !l.roster.All(func(r *replicas.Replica) bool { return r.Phase.Finished() || !l.hadPodsAtAdmission(r.Group) }) {
		return false
	}
	l.setPhase(volcano.Pending, admittedAnewReason, fmt.Sprintf("The job gives up its quota, and queues again with the pods of task %s", task))
	return true
}

// hadPodsAtAdmission reports whether the task had pods at admission.
func (l *planner) hadPodsAtAdmission(task string) bool {
	_, granted := l.seen.Admission.PodSets[task]
	return granted
}
