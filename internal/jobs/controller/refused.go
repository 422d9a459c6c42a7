package controller

import (
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/musterhq/muster/internal/jobs"
	"github.com/musterhq/muster/internal/jobs/write"
	"github.com/musterhq/muster/internal/workload"
)

// refusedAfter returns what is known after a run of the job's plan ended with the error. An error that says nothing
// about the objects, such as a conflict, changes nothing.
func refusedAfter(r jobs.RefusedObjects, err error, now time.Time) jobs.RefusedObjects {
	refused := write.RefusedOf(err)
	switch {
	case err == nil:
		return jobs.RefusedObjects{}
	case len(refused) == 0:
		return r
	}
	out := jobs.RefusedObjects{Objects: len(refused), Since: now}
	if !r.Since.IsZero() && r.Objects <= out.Objects {
		out.Objects, out.Since = r.Objects, r.Since // the API server has accepted no more of them since
	}
	out.What, out.Why = refused[0].Cannot(), workload.Cut(refused[0].Unwrap().Error(), workload.ConditionMessageBytes)
	return out
}

// noteRefused remembers which objects were refused in a run of the job's plan that ended with the error. It reports
// whether the job's status cannot say so yet.
func (r *reconciler[T]) noteRefused(job T, err error) (isNew bool) {
	before := r.refused.Get(job)
	after := refusedAfter(before, err, r.clock.Now())
	r.refused.Set(job, after)
	return before.Why == "" && after.Why != ""
}

// refusedRetry is how soon a job is planned again of which an object was refused for the first time: that plan says so
// in the status.
const refusedRetry = 10 * time.Millisecond

// noteMustGoOn remembers whether a write that the job can go on without was refused in a run of the job's plan that
// ended with the error. It reports whether that is new.
func (r *reconciler[T]) noteMustGoOn(job T, err error) (isNew bool) {
	before := r.mustGoOn.Get(job)
	after := write.MustGoOn(err)
	r.mustGoOn.Set(job, after)
	return after && !before
}

// giveUpRefused reports in the plan's progress that objects which the job needs are refused, and, once that has lasted
// for long enough, that the job gives its quota back for that. Until then the job is planned again in time.
func giveUpRefused[T client.Object](s *jobs.Seen[T], p *jobs.Plan) {
	refused := s.RefusedObjects
	if refused.Why == "" || s.Admission.Grant != jobs.Admitted || s.Admission.UnreadySince.IsZero() ||
		p.Progress.Outcome != nil {
		return
	}
	// It says more than events do, in which a Service of a plugin that is refused counts as a pod that is.
	p.Progress.Obstacle = refused.Message()
	switch due := refused.Since.Add(jobs.RefusalPatience); {
	case p.Progress.Refused == "" && s.Now.Before(due):
		p.DueBy(due)
	default:
		p.Progress.RefusedWhat, p.Progress.Refused = refused.What, refused.Why
	}
}
