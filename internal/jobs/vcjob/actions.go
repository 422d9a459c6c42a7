package vcjob

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	volcano "github.com/musterhq/muster/api/volcano/batch/v1alpha1"
	bus "github.com/musterhq/muster/api/volcano/bus/v1alpha1"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/replicas"
)

// actionReason is the reason of the event that reports an action.
const actionReason = "ExecuteAction"

// deed is an action on a job, or on one of its tasks or pods, and the reason for it.
type deed struct {
	action  bus.Action
	task    string
	replica *replicas.Replica
	why     string
}

// isSingle reports whether the action is on a task or a pod. If no pod is given, it is on the task.
func (d deed) isSingle() bool {
	switch d.action {
	case bus.RestartTaskAction, bus.RestartPodAction, bus.RestartPartitionAction:
		return true
	}
	return false
}

// do executes an action on the whole job.
func (l *look) do(d deed) {
	l.announce(d.action, d.why)
	switch d.action {
	case bus.RestartJobAction:
		if l.job.Status.RetryCount >= maxRetry(l.job) {
			// A restart is requested again before the status says that the last one has ended the job.
			l.job.Status.State.Message = d.why
			l.turn(volcano.Failed, "MaxRetry", l.restartedTooOften())
			return
		}
		l.job.Status.RetryCount++
		l.beginAnew(d.why)
	case bus.AbortJobAction:
		l.turn(volcano.Aborting, string(d.action), d.why)
	case bus.TerminateJobAction:
		l.turn(volcano.Terminating, string(d.action), d.why)
	case bus.CompleteJobAction:
		l.turn(volcano.Completing, string(d.action), d.why)
	}
}

func (l *look) announce(action bus.Action, why string) {
	l.plan.Events = append(l.plan.Events, jobs.Normal(actionReason, fmt.Sprintf("%s: %s", action, why)))
}

// beginAnew makes all pods outdated, also finished ones. The restart counts are kept: attempts are told
// apart by number, which must never repeat.
func (l *look) beginAnew(why string) {
	l.job.Status.Version++
	restarts := l.memory.restarts
	l.memory = newMemory()
	l.memory.restarts = restarts
	l.forgetObjects()
	l.lookAgain()
	l.turn(volcano.Restarting, "Restarting", why)
}

// lookAgain recomputes the roster from the changed status.
func (l *look) lookAgain() {
	l.roster = replicas.Observe(l.job.Name, groups(l.job), l.memory.of(l.job.Status.Version), jobs.ChildrenOf[*corev1.Pod](l.seen.Children))
}

// restartSingly restarts tasks and pods, and reports whether there were any. All of them together count
// as one restart of the job.
func (l *look) restartSingly(deeds []deed) bool {
	if len(deeds) == 0 {
		return false
	}
	first := deeds[0]
	why := first.why
	if n := len(deeds) - 1; n > 0 {
		why = fmt.Sprintf("%s, and %d more", why, n)
	}
	l.announce(first.action, why)
	l.job.Status.RetryCount++
	l.plan.StatusFirst = true
	if l.job.Status.RetryCount >= maxRetry(l.job) {
		l.job.Status.State.Message = why
		l.turn(volcano.Failed, "MaxRetry", l.restartedTooOften())
		return true
	}
	l.startAnew(func(r *replicas.Replica) bool {
		return slices.ContainsFunc(deeds, func(d deed) bool {
			if d.action == bus.RestartPodAction && d.replica != nil {
				return d.replica.Name == r.Name
			}
			return d.task == r.Group
		})
	})
	return true
}

// startAnew makes the pods for which holds is true outdated.
func (l *look) startAnew(holds func(*replicas.Replica) bool) {
	for i := range l.roster.Replicas {
		if r := &l.roster.Replicas[i]; holds(r) {
			at := slot(r.Group, r.Index)
			l.memory.restarts[at]++
			delete(l.memory.ended, at)
			delete(l.memory.evicted, at)
		}
	}
	setRestarts(&l.job.Status, l.memory.restarts)
	l.lookAgain()
}
