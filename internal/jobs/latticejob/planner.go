package latticejob

import (
	lattice "github.com/musterhq/muster/api/lattice/v1alpha1"
	volcano "github.com/musterhq/muster/api/volcano/batch/v1alpha1"
	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/pointers"
)

// planner makes one plan for a LatticeJob: it holds the observed state and what is planned so far.
type planner struct {
	*view
	status *reporter
	plan   *jobs.Plan
}

func newPlanner(c controller, seen jobs.Seen[*lattice.LatticeJob]) *planner {
	v, plan := &view{controller: c, seen: seen, job: seen.Job.DeepCopy()}, &jobs.Plan{}
	for _, child := range jobs.ChildrenOf[*volcano.Job](seen.Children) {
		plan.Progress.Active = true
		if child.Name == seen.Job.Name && child.DeletionTimestamp.IsZero() {
			v.vcjob = child
		}
	}
	return &planner{view: v, status: &reporter{v, plan}, plan: plan}
}

// report adds the progress for the queue, and the status if it changed.
func (p *planner) report() {
	p.plan.Status = p.job
	// Where VCJobs queue, the job may still hold quota from a time when it queued itself; no VCJob reports on the pods of
	// that time.
	p.plan.Progress.Active = p.plan.Progress.Active && p.settings.External
	if hasOutcome(p.job) {
		p.plan.Progress.Active = false
		p.plan.Progress.Outcome = &jobs.Outcome{Succeeded: p.job.Status.Phase == lattice.Succeeded,
			Message: p.job.Status.Message}
		return
	}
	// That pods run is written at once: if the VCJob is deleted, nothing else shows that they did.
	p.plan.StatusYields = !hasSchedule(p.job) &&
		(p.vcjob == nil || p.vcjob.Status.State.Phase == "" || p.vcjob.Status.State.Phase == volcano.Pending)
	if p.vcjob != nil {
		p.plan.Progress.Ready = p.vcjob.Status.State.Phase == volcano.Running
	}
}

// noteRefusedPods reports that the API server refuses pods that Volcano would create, as it says in events on the
// VCJob: the phase only says that too few of them run. Volcano counts none before it has created all.
func (p *planner) noteRefusedPods() {
	status := &p.vcjob.Status
	missing := -(status.Pending + status.Running + status.Succeeded + status.Failed + status.Terminating + status.Unknown)
	for task := range pointers.To(p.vcjob.Spec.Tasks) {
		missing += task.Replicas
	}
	if missing > 0 {
		p.plan.DueBy(p.seen.NoteRefusals(&p.plan.Progress, p.vcjob.UID, missing))
	}
}
