package vcjob

import (
	"fmt"

	volcano "github.com/musterhq/muster/api/volcano/batch/v1alpha1"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/replicas"
)

const (
	// admittedAnewReason is that of a job that gives its quota back to be admitted with other
	// tasks than before.
	admittedAnewReason = "AdmittedAnew"
	// noRoomReason is that of a job of which a task must wait for that, and of the event that
	// tells it.
	noRoomReason = "TaskWithoutQuota"
)

// withoutQuota is a task that has pods to run and had none when the job was admitted, "" if
// there is none: nothing was taken for them, and nothing can be added to what is held.
func (l *look) withoutQuota() string {
	if l.seen.Admission.Grant != jobs.Admitted {
		return ""
	}
	for _, r := range l.roster.Missing() {
		if !l.granted(r.Group) && l.mayBegin(l.tasks[r.Group]) {
			return r.Group
		}
	}
	return ""
}

// tellOfLateTask tells what such a task waits for. Pods that run are not stopped for those that
// came later.
func (l *look) tellOfLateTask() {
	task := l.withoutQuota()
	if task == "" {
		return
	}
	state, before := &l.job.Status.State, &l.seen.Job.Status.State
	state.Reason = noRoomReason
	state.Message = fmt.Sprintf("Task %s had no pods when the job was admitted: they start once the others have ended, or when the job is aborted and resumed", task)
	if before.Reason != state.Reason || before.Message != state.Message {
		l.plan.Events = append(l.plan.Events, jobs.Warning(noRoomReason, state.Message))
	}
}

// readmit has a job whose other pods have all ended give its quota back, so that it is admitted
// with the tasks that it has now, and reports whether it does.
func (l *look) readmit() bool {
	task := l.withoutQuota()
	if task == "" || !l.roster.All(func(r *replicas.Replica) bool { return r.Phase.Finished() || !l.granted(r.Group) }) {
		return false
	}
	l.turn(volcano.Pending, admittedAnewReason, fmt.Sprintf("Quota is given back, and asked for again with the pods of task %s", task))
	return true
}

// granted reports whether the task had pods when the job was admitted.
func (l *look) granted(task string) bool {
	_, granted := l.seen.Admission.PodSets[task]
	return granted
}
