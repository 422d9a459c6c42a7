package jobs

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
)

const (
	// FailedCreate is the reason of the events by which Kubernetes' controllers report that the API server refused a pod,
	// and of the events of plans that create pods themselves, as in Create(pod).OrWarn(FailedCreate).
	FailedCreate = "FailedCreate"
	// RefusalPatience is how long pods may be refused before the quota of their gang is released. Temporary shortages,
	// such as a ResourceQuota still used by terminating pods, usually end within it.
	RefusalPatience = 15 * time.Second
	// PodsRefused says what cannot be done while pods are refused.
	PodsRefused = "Its pods cannot be created"
)

// Refusal is a message with which the API server refused a pod, and when that was last reported, by the reporter's
// clock.
type Refusal struct {
	Message string
	Last    time.Time
}

// Refused returns why the API server refuses pods of the object with UID owner, once this has lasted so long that the
// job, with so many pods missing in all, cannot be expected to get them. Until then, why is empty and due is when to
// check again; both are zero if no pods are refused. A job that got further pods in the meantime is making progress, so
// the time is counted from the last one. The age of the last refusal does not matter: controllers stop reporting
// refusals after a while.
func (s Seen[T]) Refused(owner types.UID, pods int32) (why string, due time.Time) {
	why = s.lastRefusal(owner)
	if why == "" {
		return "", time.Time{}
	}
	if due := s.MissingPods.with(pods, s.Now).Since.Add(RefusalPatience); s.Now.Before(due) {
		return "", due
	}
	return why, time.Time{}
}

// lastRefusal returns why the API server last refused pods of the object with UID owner while not all pods of the job
// were ready, "" if it has not.
func (s Seen[T]) lastRefusal(owner types.UID) (why string) {
	if s.Admission.Grant != Admitted || s.Admission.UnreadySince.IsZero() {
		return ""
	}
	var last time.Time
	for _, r := range s.Refusals[owner] {
		// Older ones belong to an earlier admission, or were overcome.
		if !r.Last.Before(s.Admission.UnreadySince) && r.Last.After(s.MissingPods.Overcome) && !r.Last.Before(last) {
			last, why = r.Last, r.Message
		}
	}
	return why
}

// NoteRefusals sets in the progress whether the API server refuses pods of the object with UID owner, of a job with so
// many pods missing in all. It returns when to check again, zero for never.
func (s Seen[T]) NoteRefusals(p *Progress, owner types.UID, pods int32) (due time.Time) {
	p.Missing = pods
	p.Refused, due = s.Refused(owner, pods)
	if why := s.lastRefusal(owner); why != "" {
		p.Refusing = true
		p.Obstacle = PodsRefused + ": " + why
	}
	return due
}
