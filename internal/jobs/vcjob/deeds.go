package vcjob

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	volcano "github.com/musterhq/muster/api/volcano/batch/v1alpha1"
	bus "github.com/musterhq/muster/api/volcano/bus/v1alpha1"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/replicas"
)

// actionReason is of the event that tells what is done about something.
const actionReason = "ExecuteAction"

// deed is an action on a job, or on a task or pod of it, and why.
type deed struct {
	action  bus.Action
	task    string
	replica *replicas.Replica
	why     string
}

// isSingle reports whether it is done to a task or a pod alone. Where it happened to no
// pod its task is started anew.
func (d deed) isSingle() bool {
	switch d.action {
	case bus.RestartTaskAction, bus.RestartPodAction, bus.RestartPartitionAction:
		return true
	}
	return false
}

// do does what concerns the whole job.
func (l *look) do(d deed) {
	l.announce(d.action, d.why)
	switch d.action {
	case bus.RestartJobAction:
		if l.job.Status.RetryCount >= maxRetry(l.job) {
			// It is asked for once more before the last restart has ended the job.
			l.job.Status.State.Message = d.why
			l.turn(volcano.Failed, "MaxRetry", l.restartedTooOften())
			return
		}
		l.job.Status.RetryCount++
		l.beginAnew(d.why)
	case bus.ResumeJobAction: // it runs already
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

// beginAnew makes all pods pods of the past, those that have ended too. How often they
// were started anew before stays: a pod's attempt is told from earlier ones by its number,
// which must never come again.
func (l *look) beginAnew(why string) {
	l.job.Status.Version++
	l.memory = memory{restarts: l.memory.restarts}
	l.lookAgain()
	l.turn(volcano.Restarting, "Restarting", why)
}

// lookAgain sees pods as the status has them now.
func (l *look) lookAgain() {
	l.roster = replicas.Look(l.job.Name, groups(l.job), l.memory.of(l.job.Status.Version), jobs.ChildrenOf[*corev1.Pod](l.seen.Children))
}

// restartSingly starts tasks and pods anew, and reports whether there were any. It is one
// restart, and counts as one of the job.
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

// startAnew makes the pods for which it holds pods of the past.
func (l *look) startAnew(holds func(*replicas.Replica) bool) {
	for i := range l.roster.Replicas {
		if r := &l.roster.Replicas[i]; holds(r) {
			if l.memory.restarts == nil {
				l.memory.restarts = map[string]int32{}
			}
			at := slot(r.Group, r.Index)
			l.memory.restarts[at]++
			delete(l.memory.ended, at)
		}
	}
	setRestarts(&l.job.Status, l.memory.restarts)
	l.lookAgain()
}

// obey does what the oldest Command asks, and reports whether it did something. Each is
// done once: the status says which was the last, and only then is it deleted.
func (l *look) obey() bool {
	commands := l.commands()
	if len(commands) == 0 {
		return false
	}
	command := commands[0]
	if l.job.Status.ControlledResources[commandKey] == string(command.UID) {
		return false
	}
	remember(&l.job.Status, commandKey, string(command.UID))
	l.plan.StatusFirst = true
	why := "asked by Command " + command.Name
	if command.Message != "" {
		why += ": " + command.Message
	}
	switch {
	case command.Action == bus.ResumeJobAction && stopped(l.job):
		l.announce(command.Action, why)
		l.beginAnew(why)
	case ending(l.job), stopped(l.job) && command.Action == bus.AbortJobAction, command.Action == bus.ResumeJobAction:
		l.plan.Events = append(l.plan.Events, jobs.Normal(actionReason, fmt.Sprintf("%s: nothing to do, the job is %s (%s)", command.Action, l.job.Status.State.Phase, why)))
	case slices.Contains([]bus.Action{bus.AbortJobAction, bus.RestartJobAction, bus.TerminateJobAction, bus.CompleteJobAction}, command.Action):
		l.do(deed{action: command.Action, why: why})
	default:
		l.plan.Events = append(l.plan.Events, jobs.Warning(actionReason, fmt.Sprintf("%q is nothing that a Command can ask of a job; there are AbortJob, ResumeJob, RestartJob, TerminateJob and CompleteJob", command.Action)))
	}
	return true
}

// commands are those for the job, the oldest first.
func (l *look) commands() []*bus.Command {
	commands := jobs.ChildrenOf[*bus.Command](l.seen.Children)
	slices.SortFunc(commands, func(a, b *bus.Command) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	return commands
}

// dropCommands deletes the Command that was done, and all where the job has ended.
func (l *look) dropCommands() {
	for _, command := range l.commands() {
		if command.DeletionTimestamp.IsZero() && (finished(l.job) || l.seen.Job.Status.ControlledResources[commandKey] == string(command.UID)) {
			l.plan.Writes = append(l.plan.Writes, jobs.Delete(command, metav1.DeletePropagationBackground))
		}
	}
}
