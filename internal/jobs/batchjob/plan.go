package batchjob

import (
	batchv1 "k8s.io/api/batch/v1"

	"github.com/musterhq/muster/internal/jobs"
)

// plan returns what has to be done for a queued Job, given the observed state.
func plan(seen jobs.Seen[*batchv1.Job]) jobs.Plan {
	job, again := seen.Job, awaitsRestart(seen)
	p := jobs.Plan{Progress: jobs.Progress{
		// While the Job is being stopped, what its admission added still has to be removed, and its indexes to be made
		// ones that are run again.
		Active:      !jobs.HasNoPods(job) || seen.Admission.Grant == jobs.Stopping && (hasStarted(job) || again),
		Ready:       isReady(job),
		Reclaimable: map[string]int32{string(podSet): reclaimable(job)},
		Outcome:     outcomeOf(job),
	}}
	if granted := seen.Admission.PodSets[string(podSet)]; seen.Admission.Grant == jobs.Admitted &&
		p.Progress.Outcome == nil {
		p.Progress.Pods = podsInUse(job, granted)
		if b := admittedBounds(job, restored(job), granted); b.Elastic {
			elasticProgress(&p.Progress, job, b, granted)
		}
	}
	if again {
		p.Progress.Reclaimable = map[string]int32{string(podSet): 0}
	}
	if missing := jobs.PodsLeft(job) - job.Status.Active; missing > 0 && !suspended(job) {
		p.Due = seen.NoteRefusals(&p.Progress, job.UID, missing)
	}
	switch {
	case p.Progress.Outcome != nil:
		p.Progress.Active = !jobs.HasNoPods(job)
	case seen.Admission.Grant == jobs.Admitted:
		run(&p, seen)
	default:
		hold(&p, seen)
		p.StartedUnheld = seen.Admission.Grant == jobs.Waiting && jobs.Stops(p.Writes, job)
	}
	if p.Progress.Outcome == nil {
		mark(&p, job)
		warnOfNoRestart(&p, job)
	}
	return p
}
