package latticejob

import (
	lattice "github.com/musterhq/muster/api/lattice/v1alpha1"
	"github.com/musterhq/muster/internal/jobs"
)

// plan returns what to do about a LatticeJob.
func (c controller) plan(seen jobs.Seen[*lattice.LatticeJob]) jobs.Plan {
	p := newPlanner(c, seen)
	switch {
	case hasOutcome(p.job):
	case hasSchedule(p.job):
		p.planSchedule()
	case c.settings.External && seen.Admission.Grant == jobs.Stopping && !p.isLost():
		p.evict()
	case c.settings.External && seen.Admission.Grant == jobs.Waiting && p.vcjob != nil &&
		p.job.Status.Phase != lattice.Running && !hasStarted(p.vcjob):
		p.deleteQueuedVCJob()
	case p.vcjob != nil:
		p.syncStatus()
	case p.plan.Progress.Active:
		// The last VCJob is terminating, and the next one has the same name. That the VCJob was deleted
		// is reported once its pods are gone.
	case p.isLost():
		p.status.failLost()
	case p.job.Status.Phase == lattice.Running:
		// It is not known yet whether the VCJob exists.
	default:
		p.submit()
	}
	p.report()
	return *p.plan
}
