package jobset

import (
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	jobset "github.com/musterhq/muster/api/jobset/v1alpha2"
	"github.com/musterhq/muster/internal/jobs"
)

// attempt is one look at a JobSet: what was seen, and what is planned so far.
type attempt struct {
	seen jobs.Seen[*jobset.JobSet]
	// js is a copy whose status becomes what it should be.
	js       *jobset.JobSet
	children children
	plan     jobs.Plan
}

// plan says what follows from what was seen of a JobSet.
func plan(seen jobs.Seen[*jobset.JobSet]) jobs.Plan {
	js := seen.Job.DeepCopy()
	a := &attempt{seen: seen, js: js, children: sortChildren(jobs.ChildrenOf[*batchv1.Job](seen.Children), js.Status.Restarts)}
	a.countJobs()
	a.plan.Status = a.js
	switch {
	case finished(js):
		a.afterTheEnd()
	case a.takesOverSuspend():
		a.takeOverSuspend()
		a.plan.Status = nil
	case len(a.children.failed) > 0:
		a.applyFailurePolicy()
	case a.succeeded():
		a.complete()
	default:
		a.carryOn()
	}
	a.plan.Progress = a.progress()
	return a.plan
}

// carryOn brings a JobSet that has neither failed nor succeeded closer to its spec.
func (a *attempt) carryOn() {
	a.deleteJobs(a.children.previous)
	a.noteRestartOver()
	switch {
	case a.held():
		a.suspendJobs()
	case a.seen.Admission.MayStart():
		a.resumeJobs()
	}
	// A JobSet that waits in a queue gets nothing yet: what it needs is made when it
	// is admitted, with what it was given. One that its user suspended gets suspended
	// Jobs.
	if a.seen.Admission.MayStart() {
		a.createService()
		a.createJobs()
	}
}

// afterTheEnd removes what still runs, and in the end the JobSet itself if it has a
// time to live. Jobs that ended are kept for their logs.
func (a *attempt) afterTheEnd() {
	a.deleteJobs(a.children.previous)
	a.deleteJobs(a.children.active)
	if a.js.Spec.TTLSecondsAfterFinished == nil {
		return
	}
	due := endedAt(a.js).Add(time.Duration(*a.js.Spec.TTLSecondsAfterFinished) * time.Second)
	if a.seen.Now.Before(due) {
		a.plan.Due = due
		return
	}
	a.plan.Writes = append(a.plan.Writes, jobs.Delete(a.seen.Job, metav1.DeletePropagationForeground))
}

// deleteJobs deletes Jobs and keeps their names taken until their pods are gone.
func (a *attempt) deleteJobs(list []*batchv1.Job) {
	for _, job := range list {
		if job.DeletionTimestamp.IsZero() {
			a.plan.Writes = append(a.plan.Writes, jobs.Delete(job, metav1.DeletePropagationForeground))
		}
	}
}

// progress is what the queue needs to know.
func (a *attempt) progress() jobs.Progress {
	p := jobs.Progress{Ready: a.allReady(), Reclaimable: a.reclaimable(), Outcome: outcome(a.js)}
	p.Refused = a.refused()
	for _, job := range a.children.all() {
		if job.Status.Active > 0 || ptr.Deref(job.Status.Terminating, 0) > 0 || (!suspended(job) && !ended(job)) {
			p.Active = true
		}
	}
	return p
}

// refused is why the API server refuses pods of a Job that runs and lacks some, ""
// if it does not. It is looked at again when that has lasted long enough to tell.
func (a *attempt) refused() string {
	for _, job := range a.children.active {
		if suspended(job) || job.Status.Active+job.Status.Succeeded >= podsOf(&job.Spec) {
			continue
		}
		why, due := a.seen.Refused(job.UID)
		if why != "" {
			return why
		}
		if !due.IsZero() && (a.plan.Due.IsZero() || due.Before(a.plan.Due)) {
			a.plan.Due = due
		}
	}
	return ""
}

// reclaimable counts the pods of Jobs that have succeeded, unless a restart could run
// them again: quota that was given to others could not be taken back for them.
func (a *attempt) reclaimable() map[string]int32 {
	if mayRestart(a.js) {
		return nil
	}
	out := map[string]int32{}
	for i := range a.js.Spec.ReplicatedJobs {
		rj := &a.js.Spec.ReplicatedJobs[i]
		if succeeded := min(a.counts(rj.Name).Succeeded, rj.Replicas); succeeded > 0 {
			out[rj.Name] = succeeded * podsOf(&rj.Template.Spec)
		}
	}
	return out
}
