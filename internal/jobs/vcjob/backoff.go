package vcjob

import (
	"slices"
	"strconv"

	volcano "github.com/musterhq/muster/api/volcano/batch/v1alpha1"
	bus "github.com/musterhq/muster/api/volcano/bus/v1alpha1"
	"github.com/musterhq/muster/internal/replicas"
)

// settledKey of status.controlledResources holds the retryCount that the job had when pods for which it was
// restarted had last run for long: the restarts since then are delayed.
const settledKey = "muster.dev/settled"

// restarts reports whether the action restarts pods.
func restarts(action bus.Action) bool {
	switch action {
	case bus.RestartJobAction, bus.RestartTaskAction, bus.RestartPodAction, bus.RestartPartitionAction:
		return true
	}
	return false
}

// isDelayed reports whether the action is a restart that must wait, as others came before it, and then
// schedules a reconcile. Evictions say nothing about the program, and the last restart fails the job. A
// pod that is being deleted is not waited for, as its failure could not be acted on any more.
func (pl *planner) isDelayed(action bus.Action, h policyEvent) bool {
	if !restarts(action) || h.event == bus.PodEvictedEvent || pl.job.Status.RetryCount+1 >= maxRetry(pl.job) {
		return false
	}
	if h.replica != nil && (h.replica.Pod == nil || replicas.IsTerminating(h.replica.Pod)) || pl.isSettled(h) {
		return false
	}
	inARow := max(pl.job.Status.RetryCount-settledAt(&pl.job.Status), 0) + 1
	due := replicas.RestartDue(h.since, inARow, pl.seen.Now)
	if !pl.seen.Now.Before(due) {
		return false
	}
	pl.plan.DueBy(due)
	pl.failureWaits = true
	if h.replica != nil {
		pl.delayed[h.replica.Name] = true
	}
	return true
}

// isSettled reports whether the pod that the event is about, or one of its task, has run for long.
func (pl *planner) isSettled(h policyEvent) bool {
	if h.replica != nil {
		return h.replica.UID() != "" && replicas.Settled(h.replica.Pod)
	}
	return slices.ContainsFunc(pl.roster.Group(h.task), func(r replicas.Replica) bool {
		return r.UID() != "" && replicas.Settled(r.Pod)
	})
}

func settledAt(status *volcano.JobStatus) int32 {
	n, err := strconv.ParseInt(status.ControlledResources[settledKey], 10, 32)
	if err != nil {
		return 0 // there was none
	}
	return int32(n)
}

// recordSettled records that the next restart is the first after a pod that has run for long.
func (pl *planner) recordSettled() {
	setRecord(&pl.job.Status, settledKey, strconv.Itoa(int(pl.job.Status.RetryCount)))
}

// awaitsRestart reports whether the replica's pod is one that a policy will restart later. Its end is not
// recorded: if it goes before that, it counts as lost, and is recreated.
func (pl *planner) awaitsRestart(r *replicas.Replica) bool { return pl.delayed[r.Name] }
