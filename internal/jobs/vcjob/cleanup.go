package vcjob

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	bus "github.com/musterhq/muster/api/volcano/bus/v1alpha1"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/jobs/write"
)

// cleanUp stops what still runs of a job that has finished, and finally deletes the job.
func (p *planner) cleanUp() {
	p.deleteUnfinished()
	ended, ttl := p.job.Status.State.LastTransitionTime.Time, p.job.Spec.TTLSecondsAfterFinished
	p.plan.Expire(p.seen.Job, ended, ttl, p.seen.Now, metav1.DeletePropagationBackground)
}

// deleteUnfinished deletes all pods that have not finished.
func (p *planner) deleteUnfinished() { p.plan.DeletePods(p.roster.Pods(true)) }

// deleteCommands deletes the Command that was executed, stale ones, and all if the job has finished.
func (p *planner) deleteCommands() {
	for _, command := range p.allCommands() {
		if command.DeletionTimestamp.IsZero() &&
			(hasOutcome(p.job) || p.isStale(command) ||
				p.seen.Job.Status.ControlledResources[commandKey] == string(command.UID)) {
			p.plan.Writes = append(p.plan.Writes, write.Delete(command, metav1.DeletePropagationBackground))
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
