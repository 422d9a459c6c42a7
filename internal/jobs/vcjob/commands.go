package vcjob

import (
	"cmp"
	"fmt"
	"slices"

	bus "github.com/musterhq/muster/api/volcano/bus/v1alpha1"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/jobs/write"
)

// executeCommand executes the oldest Command, and reports whether it did. Each is executed once: the status
// records the last one, which is deleted only after that.
func (p *planner) executeCommand() bool {
	commands := p.commands()
	if len(commands) == 0 {
		return false
	}
	command := commands[0]
	if p.job.Status.ControlledResources[commandKey] == string(command.UID) {
		return false
	}
	setRecord(&p.job.Status, commandKey, string(command.UID))
	p.plan.StatusFirst = true
	why := "requested by Command " + command.Name
	if command.Message != "" {
		why += ": " + command.Message
	}
	switch {
	case command.Action == bus.ResumeJobAction && stopped(p.job):
		p.status.note(command.Action, why)
		p.status.restartJob(why)
	case awaitsOutcome(p.job), stopped(p.job) && command.Action == bus.AbortJobAction,
		command.Action == bus.ResumeJobAction:
		p.plan.AddEvents(write.Normal(actionReason,
			fmt.Sprintf("%s: nothing to do, the job is %s (%s)", command.Action, p.job.Status.State.Phase, why)))
	case command.Action == bus.AbortJobAction, command.Action == bus.RestartJobAction,
		command.Action == bus.TerminateJobAction, command.Action == bus.CompleteJobAction:
		p.status.execute(pendingAction{action: command.Action, why: why})
	default:
		p.plan.AddEvents(write.Warning(actionReason, fmt.Sprintf("%q is not an action that a Command"+
			" can request; the actions are AbortJob, ResumeJob, RestartJob, TerminateJob and CompleteJob", command.Action)))
	}
	return true
}

// commands returns the job's Commands, the oldest first.
func (v *view) commands() []*bus.Command {
	return slices.DeleteFunc(v.allCommands(), v.isStale)
}

// deleteCommands deletes the Command that was executed, stale ones, and all if the job has finished.
func (p *planner) deleteCommands() {
	for _, command := range p.allCommands() {
		if command.DeletionTimestamp.IsZero() &&
			(hasOutcome(p.job) || p.isStale(command) ||
				p.seen.Job.Status.ControlledResources[commandKey] == string(command.UID)) {
			p.plan.Add(write.Delete(command))
		}
	}
}

func (v *view) allCommands() []*bus.Command {
	commands := jobs.ChildrenOf[*bus.Command](v.seen.Children)
	slices.SortFunc(commands, func(a, b *bus.Command) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	return commands
}

// isStale reports whether the Command names its job without a UID and is older than this job.
func (v *view) isStale(command *bus.Command) bool {
	return command.TargetObject != nil && command.TargetObject.UID == "" &&
		command.CreationTimestamp.Before(&v.job.CreationTimestamp)
}
