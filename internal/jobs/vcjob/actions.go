package vcjob

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	volcano "github.com/musterhq/muster/api/volcano/batch/v1alpha1"
	bus "github.com/musterhq/muster/api/volcano/bus/v1alpha1"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/replicas"
)

// actionReason is the reason of the event that reports an action.
const actionReason = "ExecuteAction"

// pendingAction is an action on a job, or on one of its tasks or pods, and the reason for it.
type pendingAction struct {
	action  bus.Action
	task    string
	replica *replicas.Replica
	why     string
	// settled says that a pod concerned has run for long.
	settled bool
}

// isSingle reports whether the action is on a task or a pod. If no pod is given, it is on the task.
func (d pendingAction) isSingle() bool {
	switch d.action {
	case bus.RestartTaskAction, bus.RestartPodAction, bus.RestartPartitionAction:
		return true
	}
	return false
}

// execute executes an action on the whole job.
func (l *planner) execute(d pendingAction) {
	l.recordAction(d.action, d.why)
	switch d.action {
	case bus.RestartJobAction:
		if l.job.Status.RetryCount >= maxRetry(l.job) {
			// A restart is requested again before the status says that the last one has ended the job.
			l.job.Status.State.Message = d.why
			l.setPhase(volcano.Failed, "MaxRetry", l.maxRetryMessage())
			return
		}
		if d.settled {
			l.recordSettled()
		}
		l.job.Status.RetryCount++
		l.restartJob(d.why)
	case bus.AbortJobAction:
		l.setPhase(volcano.Aborting, string(d.action), d.why)
	case bus.TerminateJobAction:
		l.setPhase(volcano.Terminating, string(d.action), d.why)
	case bus.CompleteJobAction:
		l.setPhase(volcano.Completing, string(d.action), d.why)
	}
}

func (l *planner) recordAction(action bus.Action, why string) {
	l.plan.Events = append(l.plan.Events, jobs.Normal(actionReason, fmt.Sprintf("%s: %s", action, why)))
}

// restartJob makes all pods outdated, also finished ones. The restart counts are kept: attempts are told
// apart by number, which must never repeat.
func (l *planner) restartJob(why string) {
	l.job.Status.Version++
	restarts := l.records.restarts
	l.records = newPodRecords()
	l.records.restarts = restarts
	l.clearObjectRecords()
	l.observe()
	l.setPhase(volcano.Restarting, "Restarting", why)
}

// observe computes the roster, again if the status has changed.
func (l *planner) observe() {
	l.usable = map[string]bool{}
	l.roster = replicas.Observe(l.job.Name, groups(l.job), l.records.of(l.job.Status.Version), jobs.ChildrenOf[*corev1.Pod](l.seen.Children))
}

// restartTasksAndPods restarts tasks and pods, and reports whether there were any. All of them together count
// as one restart of the job.
func (l *planner) restartTasksAndPods(pending []pendingAction) bool {
	if len(pending) == 0 {
		return false
	}
	first := pending[0]
	why := first.why
	if n := len(pending) - 1; n > 0 {
		why = fmt.Sprintf("%s, and %d more", why, n)
	}
	l.recordAction(first.action, why)
	if slices.ContainsFunc(pending, func(d pendingAction) bool { return d.settled }) {
		l.recordSettled()
	}
	l.job.Status.RetryCount++
	l.plan.StatusFirst = true
	if l.job.Status.RetryCount >= maxRetry(l.job) {
		l.job.Status.State.Message = why
		l.setPhase(volcano.Failed, "MaxRetry", l.maxRetryMessage())
		return true
	}
	tasks, pods := sets.New[string](), sets.New[string]()
	for _, d := range pending {
		if d.action == bus.RestartPodAction && d.replica != nil {
			pods.Insert(d.replica.Name)
		} else {
			tasks.Insert(d.task)
		}
	}
	l.markOutdated(func(r *replicas.Replica) bool { return pods.Has(r.Name) || tasks.Has(r.Group) })
	return true
}

// markOutdated makes the pods for which holds is true outdated.
func (l *planner) markOutdated(holds func(*replicas.Replica) bool) {
	for i := range l.roster.Replicas {
		if r := &l.roster.Replicas[i]; holds(r) {
			at := slot(r.Group, r.Index)
			l.records.restarts[at]++
			delete(l.records.ended, at)
			delete(l.records.evicted, at)
		}
	}
	setRestarts(&l.job.Status, l.records.restarts)
	l.observe()
}
