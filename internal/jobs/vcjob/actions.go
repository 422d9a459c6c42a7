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
func (p pendingAction) isSingle() bool {
	switch p.action {
	case bus.RestartTaskAction, bus.RestartPodAction, bus.RestartPartitionAction:
		return true
	}
	return false
}

// execute executes an action on the whole job.
func (pl *planner) execute(d pendingAction) {
	pl.recordAction(d.action, d.why)
	switch d.action {
	case bus.RestartJobAction:
		if pl.job.Status.RetryCount >= maxRetry(pl.job) {
			// A restart is requested again before the status says that the last one has ended the job.
			pl.job.Status.State.Message = d.why
			pl.setPhase(volcano.Failed, "MaxRetry", pl.maxRetryMessage())
			return
		}
		if d.settled {
			pl.recordSettled()
		}
		pl.job.Status.RetryCount++
		pl.restartJob(d.why)
	case bus.AbortJobAction:
		pl.setPhase(volcano.Aborting, string(d.action), d.why)
	case bus.TerminateJobAction:
		pl.setPhase(volcano.Terminating, string(d.action), d.why)
	case bus.CompleteJobAction:
		pl.setPhase(volcano.Completing, string(d.action), d.why)
	}
}

func (pl *planner) recordAction(action bus.Action, why string) {
	pl.plan.Events = append(pl.plan.Events, jobs.Normal(actionReason, fmt.Sprintf("%s: %s", action, why)))
}

// restartJob makes all pods outdated, also finished ones. The restart counts are kept: attempts are told
// apart by number, which must never repeat.
func (pl *planner) restartJob(why string) {
	pl.job.Status.Version++
	restarts := pl.records.restarts
	pl.records = newPodRecords()
	pl.records.restarts = restarts
	pl.clearObjectRecords()
	pl.observe()
	pl.setPhase(volcano.Restarting, "Restarting", why)
}

// observe computes the roster, again if the status has changed.
func (pl *planner) observe() {
	pl.usable = map[string]bool{}
	pl.roster = replicas.Observe(pl.job.Name, groups(pl.job), pl.records.of(pl.job.Status.Version), jobs.ChildrenOf[*corev1.Pod](pl.seen.Children))
}

// restartTasksAndPods restarts tasks and pods, and reports whether there were any. All of them together count
// as one restart of the job.
func (pl *planner) restartTasksAndPods(pending []pendingAction) bool {
	if len(pending) == 0 {
		return false
	}
	first := pending[0]
	why := first.why
	if n := len(pending) - 1; n > 0 {
		why = fmt.Sprintf("%s, and %d more", why, n)
	}
	pl.recordAction(first.action, why)
	if slices.ContainsFunc(pending, func(d pendingAction) bool { return d.settled }) {
		pl.recordSettled()
	}
	pl.job.Status.RetryCount++
	pl.plan.StatusFirst = true
	if pl.job.Status.RetryCount >= maxRetry(pl.job) {
		pl.job.Status.State.Message = why
		pl.setPhase(volcano.Failed, "MaxRetry", pl.maxRetryMessage())
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
	pl.markOutdated(func(r *replicas.Replica) bool { return pods.Has(r.Name) || tasks.Has(r.Group) })
	return true
}

// markOutdated makes the pods for which holds is true outdated.
func (pl *planner) markOutdated(holds func(*replicas.Replica) bool) {
	for i := range pl.roster.Replicas {
		if r := &pl.roster.Replicas[i]; holds(r) {
			at := slot(r.Group, r.Index)
			pl.records.restarts[at]++
			delete(pl.records.ended, at)
			delete(pl.records.evicted, at)
		}
	}
	setRestarts(&pl.job.Status, pl.records.restarts)
	pl.observe()
}
