package vcjob

import (
	"fmt"
	"slices"

	bus "github.com/musterhq/muster/api/volcano/bus/v1alpha1"
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
		p.plan.Events = append(p.plan.Events, write.Normal(actionReason,
			fmt.Sprintf("%s: nothing to do, the job is %s (%s)", command.Action, p.job.Status.State.Phase, why)))
	case command.Action == bus.AbortJobAction, command.Action == bus.RestartJobAction,
		command.Action == bus.TerminateJobAction, command.Action == bus.CompleteJobAction:
		p.status.execute(pendingAction{action: command.Action, why: why})
	default:
		p.plan.Events = append(p.plan.Events, write.Warning(actionReason, fmt.Sprintf("%q is not an action that a Command"+
			" can request; the actions are AbortJob, ResumeJob, RestartJob, TerminateJob and CompleteJob", command.Action)))
	}
	return true
}

// commands returns the job's Commands, the oldest first.
func (v *view) commands() []*bus.Command {
	return slices.DeleteFunc(v.allCommands(), v.isStale)
}
