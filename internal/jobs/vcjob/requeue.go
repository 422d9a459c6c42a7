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

// taskWithoutQuota returns a task that has pods to run and no quota for any of them, "" if there is none: it had none at
// admission, or has given back all. A reservation cannot be extended.
func (l *planner) taskWithoutQuota() string {
	if l.seen.Admission.Grant != jobs.Admitted {
		return ""
	}
	for _, r := range l.roster.Missing() {
		if !l.hasQuota(r.Group) && l.mayStart(l.tasks[r.Group]) {
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
	had := "had no pods when the job was admitted"
	switch granted := l.seen.Admission.PodSets[task]; {
	case granted.Count > 0:
		had = "had ended or was scaled to no pods, and gave its quota back"
	case granted.Asked > 0:
		had = "got no quota for its pods when the job was admitted"
	}
	state, before := &l.job.Status.State, &l.seen.Job.Status.State
	state.Reason = taskWithoutQuotaReason
	state.Message = fmt.Sprintf("Task %s %s: they start once the others have ended, or when the job is aborted and resumed", task, had)
	if before.Reason != state.Reason || before.Message != state.Message {
		l.plan.Events = append(l.plan.Events, jobs.Warning(taskWithoutQuotaReason, state.Message))
	}
}

// requeue gives the quota back if all other pods of the job have finished, so that the job is admitted
// with its current tasks, and reports whether it did. So does a job that begins again and has given back quota that it
// needs.
func (l *planner) requeue() bool {
	task := l.taskWithoutQuota()
	switch {
	case task != "" && l.roster.All(func(r *replicas.Replica) bool { return r.Phase.Finished() || !l.hasQuota(r.Group) }):
		l.setPhase(volcano.Pending, admittedAnewReason, fmt.Sprintf("The job gives up its quota, and queues again with the pods of task %s", task))
	case l.lacksMinimum():
		l.setPhase(volcano.Pending, admittedAnewReason, "The job gives up its quota, and queues again: it has given part of it back, and the rest is for fewer pods than must run")
	default:
		return false
	}
	return true
}

// hasQuota reports whether quota is held for any pods of the task.
func (l *planner) hasQuota(task string) bool { return l.seen.Admission.PodSets[task].Left > 0 }
