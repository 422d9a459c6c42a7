package jobs

import (
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/musterhq/muster/internal/workload"
)

// A job needs more objects than pods: a JobSet needs Jobs, a LatticeJob ConfigMaps, a GenericJob Services. The API server
// may refuse such an object for a quota, a policy or a webhook, or an object of another owner may have its name. Either
// way the job gets no further until a user mends that, so the job gives its quota back, like a job whose pods are refused.
//
// Example: a JobSet of four Jobs is admitted in a namespace whose ResourceQuota allows no Jobs. Its first reconcile tries
// to create them in vain. The second one, milliseconds later, says so in the status of the JobSet and of its Workload, and
// tries again. If the API server accepts no more Jobs within 15 s, the JobSet is evicted.

// RefusedObjects says which of the objects that a job needs it does not get. The zero value means that nothing is refused.
type RefusedObjects struct {
	// Objects is the lowest number of refused objects since the first refusal. Since is when that number was reached, by
	// this process's clock.
	Objects int
	Since   time.Time
	// What cannot be done, and Why, for users: "Its Jobs cannot be created" because of the quota.
	What, Why string
}

// Message says what is refused, and why; "" if nothing is.
func (r RefusedObjects) Message() string {
	if r.Why == "" {
		return ""
	}
	return r.What + ": " + r.Why
}

// refusedAfter returns what is known after a run of the job's plan ended with the error. An error that says nothing about the
// objects, such as a conflict, changes nothing.
func refusedAfter(r RefusedObjects, err error, now time.Time) RefusedObjects {
	refused := RefusedOf(err)
	switch {
	case err == nil:
		return RefusedObjects{}
	case len(refused) == 0:
		return r
	}
	out := RefusedObjects{Objects: len(refused), Since: now}
	if !r.Since.IsZero() && r.Objects <= out.Objects {
		out.Objects, out.Since = r.Objects, r.Since // the API server has accepted no more of them since
	}
	out.What, out.Why = refused[0].Cannot(), workload.Cut(refused[0].Unwrap().Error(), workload.ConditionMessageBytes)
	return out
}

// refusedRetry is how soon a job is planned again of which an object was refused for the first time: that plan says so in
// the status.
const refusedRetry = 10 * time.Millisecond

// noteRefused remembers which objects were refused in a run of the job's plan that ended with the error. It reports
// whether the job's status cannot say so yet.
func (r *reconciler[T]) noteRefused(job T, err error) (isNew bool) {
	before := r.refused.get(job)
	after := refusedAfter(before, err, r.clock.Now())
	r.refused.set(job, after)
	return before.Why == "" && after.Why != ""
}

// noteMustGoOn remembers whether a write that the job can go on without was refused in a run of the job's plan that ended
// with the error. It reports whether that is new.
func (r *reconciler[T]) noteMustGoOn(job T, err error) (isNew bool) {
	before := r.mustGoOn.get(job)
	after := MustGoOn(err)
	r.mustGoOn.set(job, after)
	return after && !before
}

// giveUpRefused reports in the plan's progress that objects which the job needs are refused, and, once that has lasted for
// long enough, that the job gives its quota back for that. Until then the job is planned again in time.
func giveUpRefused[T client.Object](s *Seen[T], p *Plan) {
	refused := s.RefusedObjects
	if refused.Why == "" || s.Admission.Grant != Admitted || s.Admission.UnreadySince.IsZero() || p.Progress.Outcome != nil {
		return
	}
	// It says more than events do, in which a Service of a plugin that is refused counts as a pod that is.
	p.Progress.Obstacle = refused.Message()
	switch due := refused.Since.Add(refusalPatience); {
	case p.Progress.Refused == "" && s.Now.Before(due):
		p.DueBy(due)
	default:
		p.Progress.RefusedWhat, p.Progress.Refused = refused.What, refused.Why
	}
}
