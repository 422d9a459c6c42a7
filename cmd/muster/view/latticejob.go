package view

import (
	"cmp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	lattice "github.com/musterhq/muster/api/lattice/v1alpha1"
	volcano "github.com/musterhq/muster/api/volcano/batch/v1alpha1"
	"github.com/musterhq/muster/internal/jobs/latticejob"
)

// latticeJobSubject returns the subject of a LatticeJob: that of its VCJob, if there is one, under the LatticeJob's
// name.
func latticeJobSubject(job *lattice.LatticeJob, vcjob *volcano.Job, owned owners) *subject {
	own := latticejob.Summary(job, vcjob)
	s := newSubject(&job.ObjectMeta, own, owned)
	s.blocked = ""
	if vcjob != nil {
		s = vcJobSubject(vcjob, owned)
		s.held = "" // an aborted VCJob of a LatticeJob has failed
		s.makers = []types.UID{vcjob.UID}
		// The VCJob may be over, but the status of the LatticeJob is not updated yet.
		s.meta, s.outcome, s.startedAt = &job.ObjectMeta, outcomeOf(own.Outcome), own.StartedAt
	}
	s.kind, s.group = "LatticeJob", lattice.GroupVersion.Group
	s.queue = cmp.Or(own.Queue, s.queue, volcano.DefaultQueue)
	s.workload = cmp.Or(owned.workloads[job.UID], s.workload) // if Volcano runs the pods, the LatticeJob itself queues
	if s.workload == nil && s.blocked == "" {
		s.blocked = own.Blocked
	}
	return s
}

// latticeJobs returns the LatticeJobs, and the VCJobs that none of them owns. A LatticeJob with a schedule is
// represented by its runs, as a CronJob is, unless it cannot have any.
func latticeJobs(snapshot *Snapshot, owned owners) (jobs []*subject, others []*volcano.Job) {
	made := map[string]*volcano.Job{}
	for i := range snapshot.VCJobs {
		job := &snapshot.VCJobs[i]
		owner := metav1.GetControllerOf(job)
		if owner == nil || owner.Kind != "LatticeJob" {
			others = append(others, job)
			continue
		}
		made[string(owner.UID)] = job
	}
	for i := range snapshot.LatticeJobs {
		job := &snapshot.LatticeJobs[i]
		if hasRuns(job) {
			continue
		}
		jobs = append(jobs, latticeJobSubject(job, made[string(job.UID)], owned))
		delete(made, string(job.UID))
	}
	for i := range snapshot.VCJobs { // VCJobs whose LatticeJob is not in the snapshot
		job := &snapshot.VCJobs[i]
		if owner := metav1.GetControllerOf(job); owner != nil && made[string(owner.UID)] == job {
			others = append(others, job)
		}
	}
	return jobs, others
}
