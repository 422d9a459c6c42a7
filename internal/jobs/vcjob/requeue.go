package vcjob

import (
	"fmt"
	"slices"
	"strings"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
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
func (pl *planner) taskWithoutQuota() string {
	if pl.seen.Admission.Grant != jobs.Admitted {
		return ""
	}
	for _, r := range pl.roster.Missing() {
		if !pl.hasQuota(r.Group) && pl.mayStart(pl.tasks[r.Group]) {
			return r.Group
		}
	}
	return ""
}

// reportTaskWithoutQuota reports what such a task waits for. Running pods are not stopped for it.
func (pl *planner) reportTaskWithoutQuota() {
	task := pl.taskWithoutQuota()
	if task == "" {
		return
	}
	had := "Task " + task + " had no pods when the job was admitted"
	switch granted := pl.seen.Admission.PodSets[task]; {
	case granted.Count > 0:
		had = "Task " + task + " had ended or was scaled to no pods, and gave its quota back"
	case granted.Asked > 0:
		had = pl.admittedWithout(task)
	}
	state, before := &pl.job.Status.State, &pl.seen.Job.Status.State
	state.Reason = taskWithoutQuotaReason
	state.Message = had + ": they start once the others have ended, or when the job is aborted and resumed"
	if before.Reason != state.Reason || before.Message != state.Message {
		pl.plan.Events = append(pl.plan.Events, jobs.Warning(taskWithoutQuotaReason, state.Message))
	}
}

// admittedWithout says that the job was admitted without pods of the task, and without those of others that it could do
// without: none of these fitted.
func (pl *planner) admittedWithout(task string) string {
	tasks := []string{task}
	for i := range pl.job.Spec.Tasks {
		name := nameOf(pl.job, i)
		if granted, asked := pl.seen.Admission.PodSets[name]; asked && name != task && granted.Asked > 0 && granted.Count == 0 && pl.roster.InUse(name) == 0 && pl.needed(name) > 0 {
			tasks = append(tasks, name)
		}
	}
	if len(tasks) == 1 {
		return fmt.Sprintf("Task %s got no quota for its pods when the job was admitted, as they did not fit beside the others", task)
	}
	return fmt.Sprintf("Tasks %s got no quota for their pods when the job was admitted, as they did not fit beside the others", strings.Join(tasks, ", "))
}

// requeue gives the quota back if all other pods of the job have finished, so that the job is admitted
// with its current tasks, and reports whether it did. So does a job that begins again and has given back quota that it
// needs.
func (pl *planner) requeue() bool {
	task := pl.taskWithoutQuota()
	switch {
	case task != "" && pl.roster.All(func(r *replicas.Replica) bool { return r.Phase.Finished() || !pl.hasQuota(r.Group) }):
		pl.setPhase(volcano.Pending, admittedAnewReason, fmt.Sprintf("The job gives up its quota, and queues again with the pods of task %s", task))
	case pl.lacksMinimum():
		pl.setPhase(volcano.Pending, admittedAnewReason, "The job gives up its quota, and queues again: it has given part of it back, and the rest is for fewer pods than must run")
	default:
		return false
	}
	return true
}

// hasQuota reports whether quota is held for any pods of the task.
func (pl *planner) hasQuota(task string) bool { return pl.seen.Admission.PodSets[task].Left > 0 }

// tasksOver returns the tasks of which all pods have ended, in a job of which some tasks can do without pods. When such a
// job queues again for tasks that had none, these tasks are not asked for: they could be given the quota once more, in
// place of those that wait for it. Tasks that the job's Workload asks for already are not among them.
func tasksOver(job *volcano.Job, optional []bool, queued []kueue.PodSet) []bool {
	over := make([]bool, len(job.Spec.Tasks))
	if !slices.Contains(optional, true) {
		return over
	}
	ended, left := readPodRecords(&job.Status).ended, false
	for i := range job.Spec.Tasks {
		name := nameOf(job, i)
		asked := slices.ContainsFunc(queued, func(ps kueue.PodSet) bool { return string(ps.Name) == name })
		over[i] = countOf(&job.Spec.Tasks[i]) > 0 && !asked
		for index := int32(0); over[i] && index < countOf(&job.Spec.Tasks[i]); index++ {
			over[i] = ended[slot(name, index)] != ""
		}
		left = left || countOf(&job.Spec.Tasks[i]) > 0 && !over[i]
	}
	if !left {
		clear(over) // the job has ended
	}
	return over
}
