package vcjob

import (
	"fmt"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/util/sets"

	volcano "github.com/musterhq/muster/api/volcano/batch/v1alpha1"
	bus "github.com/musterhq/muster/api/volcano/bus/v1alpha1"
	"github.com/musterhq/muster/internal/jobs/write"
	"github.com/musterhq/muster/internal/pointers"
	"github.com/musterhq/muster/internal/replicas"
)

// actionReason is the reason of the event that reports an action.
const actionReason = "ExecuteAction"

// react executes the actions that policies ask for, and reports whether there are any.
func (rep *reporter) react() bool {
	pending := rep.policies.due()
	switch {
	case len(pending) == 0:
		return false
	case pending[0].isSingle():
		rep.restartTasksAndPods(pending)
	default:
		rep.execute(pending[0])
	}
	return true
}

// execute executes an action on the whole job.
func (rep *reporter) execute(d pendingAction) {
	rep.note(d.action, d.why)
	switch d.action {
	case bus.RestartJobAction:
		if rep.job.Status.RetryCount >= maxRetry(rep.job) {
			// A restart is requested again before the status says that the last one has ended the job.
			rep.job.Status.State.Message = d.why
			rep.setPhase(volcano.Failed, "MaxRetry", rep.maxRetryMessage())
			return
		}
		if d.settled {
			rep.recordSettled()
		}
		rep.job.Status.RetryCount++
		rep.restartJob(d.why)
	case bus.AbortJobAction:
		rep.setPhase(volcano.Aborting, string(d.action), d.why)
	case bus.TerminateJobAction:
		rep.setPhase(volcano.Terminating, string(d.action), d.why)
	case bus.CompleteJobAction:
		rep.setPhase(volcano.Completing, string(d.action), d.why)
	}
}

func (rep *reporter) note(action bus.Action, why string) {
	rep.plan.AddEvents(write.Normal(actionReason, fmt.Sprintf("%s: %s", action, why)))
}

// restartJob makes all pods outdated, also finished ones. The restart counts are kept: attempts are told
// apart by number, which must never repeat.
func (rep *reporter) restartJob(why string) {
	rep.job.Status.Version++
	restarts := rep.records.restarts
	rep.records = newPodRecords()
	rep.records.restarts = restarts
	rep.objects.forget()
	rep.observe()
	rep.setPhase(volcano.Restarting, "Restarting", why)
}

// restartTasksAndPods restarts tasks and pods. All of them together count as one restart of the job.
func (rep *reporter) restartTasksAndPods(pending []pendingAction) {
	first := pending[0]
	why := first.why
	if n := len(pending) - 1; n > 0 {
		why = fmt.Sprintf("%s, and %d more", why, n)
	}
	rep.note(first.action, why)
	if slices.ContainsFunc(pending, func(d pendingAction) bool { return d.settled }) {
		rep.recordSettled()
	}
	rep.job.Status.RetryCount++
	rep.plan.StatusFirst = true
	if rep.job.Status.RetryCount >= maxRetry(rep.job) {
		rep.job.Status.State.Message = why
		rep.setPhase(volcano.Failed, "MaxRetry", rep.maxRetryMessage())
		return
	}
	tasks, pods := sets.New[string](), sets.New[string]()
	for _, d := range pending {
		if d.action == bus.RestartPodAction && d.replica != nil {
			pods.Insert(d.replica.Name)
		} else {
			tasks.Insert(d.task)
		}
	}
	rep.markOutdated(func(r *replicas.Replica) bool { return pods.Has(r.Name) || tasks.Has(r.Group) })
}

// markOutdated makes the pods for which holds is true outdated.
func (rep *reporter) markOutdated(holds func(*replicas.Replica) bool) {
	for r := range pointers.To(rep.roster.Replicas) {
		if holds(r) {
			at := slot(r.Group, r.Index)
			rep.records.restarts[at]++
			delete(rep.records.ended, at)
			delete(rep.records.evicted, at)
		}
	}
	setRestarts(&rep.job.Status, rep.records.restarts)
	rep.observe()
}

// recordSettled records that the next restart is the first after a pod that has run for long.
func (rep *reporter) recordSettled() {
	setRecord(&rep.job.Status, settledKey, strconv.Itoa(int(rep.job.Status.RetryCount)))
}
