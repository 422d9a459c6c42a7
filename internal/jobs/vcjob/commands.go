package vcjob

import (
	"cmp"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	bus "github.com/musterhq/muster/api/volcano/bus/v1alpha1"
	"github.com/musterhq/muster/internal/jobs"
)

// executeCommand executes the oldest Command, and reports whether it did. Each is executed once: the status
// records the last one, which is deleted only after that.
func (pl *planner) executeCommand() bool {
	commands := pl.commands()
	if len(commands) == 0 {
		return false
	}
	command := commands[0]
	if pl.job.Status.ControlledResources[commandKey] == string(command.UID) {
		return false
	}
	setRecord(&pl.job.Status, commandKey, string(command.UID))
	pl.plan.StatusFirst = true
	why := "requested by Command " + command.Name
	if command.Message != "" {
		why += ": " + command.Message
	}
	switch {
	case command.Action == bus.ResumeJobAction && stopped(pl.job):
		pl.recordAction(command.Action, why)
		pl.restartJob(why)
	case ending(pl.job), stopped(pl.job) && command.Action == bus.AbortJobAction, command.Action == bus.ResumeJobAction:
		pl.plan.Events = append(pl.plan.Events, jobs.Normal(actionReason, fmt.Sprintf("%s: nothing to do, the job is %s (%s)", command.Action, pl.job.Status.State.Phase, why)))
	case slices.Contains([]bus.Action{bus.AbortJobAction, bus.RestartJobAction, bus.TerminateJobAction, bus.CompleteJobAction}, command.Action):
		pl.execute(pendingAction{action: command.Action, why: why})
	default:
		pl.plan.Events = append(pl.plan.Events, jobs.Warning(actionReason, fmt.Sprintf("%q is not an action that a Command can request; the actions are AbortJob, ResumeJob, RestartJob, TerminateJob and CompleteJob", command.Action)))
	}
	return true
}

// commands returns the job's Commands, the oldest first.
func (pl *planner) commands() []*bus.Command {
	return slices.DeleteFunc(pl.allCommands(), pl.isStale)
}

// isStale reports whether the Command names its job without a UID and is older than this job.
func (pl *planner) isStale(command *bus.Command) bool {
	return command.TargetObject != nil && command.TargetObject.UID == "" && command.CreationTimestamp.Before(&pl.job.CreationTimestamp)
}

func (pl *planner) allCommands() []*bus.Command {
	commands := jobs.ChildrenOf[*bus.Command](pl.seen.Children)
	slices.SortFunc(commands, func(a, b *bus.Command) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	return commands
}

// deleteCommands deletes the Command that was executed, stale ones, and all if the job has finished.
func (pl *planner) deleteCommands() {
	for _, command := range pl.allCommands() {
		if command.DeletionTimestamp.IsZero() && (finished(pl.job) || pl.isStale(command) || pl.seen.Job.Status.ControlledResources[commandKey] == string(command.UID)) {
			pl.plan.Writes = append(pl.plan.Writes, jobs.Delete(command, metav1.DeletePropagationBackground))
		}
	}
}
